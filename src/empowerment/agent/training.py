"""Algorithm 1 from end to end: a channel, a fit to its bound, a policy."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from empowerment.agent.acting import PolicyActor
from empowerment.agent.settings import AgentSettings
from empowerment.channel import AbstractChannel, make_channel, plan_length, train_channel
from empowerment.data import Spaces
from empowerment.model import DVBF
from empowerment.optimise import SILENT, Callback
from empowerment.policy import (
    Agent,
    Critic,
    Evaluated,
    Fit,
    Policy,
    Surrogate,
    Task,
    fit_bound,
    fit_surrogate,
    train_policy,
    unfitted_surrogate,
    warning,
)
from empowerment.types import Action, Key, Scalar, State
from empowerment.worlds import AbstractWorld, Bounded

T = TypeVar("T")

DEFAULTS = AgentSettings()


@runtime_checkable
class Hooks(Protocol):
    """Where the stages of a training run are observed and stored."""

    def stage(self, name: str, like: T, train: Callable[[Callback], tuple[T, dict[str, Any]]]) -> T:
        """Return the result of a stage: of `train`, or as stored by a run before."""
        ...


class _NoHooks:
    """Stores nothing."""

    def stage(self, name: str, like: T, train: Callable[[Callback], tuple[T, dict[str, Any]]]) -> T:
        return train(SILENT)[0]


@dataclass(frozen=True)
class TrainedAgent:
    """A trained agent.

    Attributes:
        world: The world it was trained in, with actions before the squash.
        channel: Source and planning.
        surrogate: Fit to their bound; the policy was trained on it unless jointly with them. Joint
            runs of earlier versions have none.
        policy: The policy.
        model: Model whose filter estimates the state; none where the state is observed.
        num_agents: Number of alike agents in the environment, each with this policy.
        task: What counted beside empowerment.
    """

    world: Bounded
    channel: AbstractChannel
    surrogate: Surrogate | None
    policy: Policy
    model: DVBF | None = None
    num_agents: int = 1
    task: Task | None = None

    def act(self, state: State) -> Action:
        """Return the mean action at a state, within its limits; the likeliest discrete one."""
        return self.world.squash(self.policy(state).mean)

    def actor(self, *, sample: bool = False) -> PolicyActor:
        """Build an actor for an environment, with a filter if there is a model."""
        return PolicyActor(
            self.policy, self.world, self.model, num_agents=self.num_agents, sample=sample
        )

    def check_spaces(self, spaces: Spaces) -> None:
        """Refuse an environment with other observations or actions than the agent has."""
        size = self.world.states.size
        if self.model is not None:
            size = self.model.observations.offset.size
        choices = self.num_agents * self.world.actions.choices
        acted = len(choices) or self.num_agents * self.world.actions.size
        wanted = acted, self.num_agents * size
        found = len(spaces.action_names), len(spaces.observation_names)
        if wanted != found:
            raise ValueError(
                f"Expected an environment with {wanted[1]} observed columns and {wanted[0]} "
                f"actions, as the agent was trained for; got {found[1]} and {found[0]}."
            )
        if choices != spaces.action_choices:
            raise ValueError(
                f"Expected an environment with actions of {choices or 'no'} choices, as the agent "
                f"was trained for; got {spaces.action_choices or 'none'}."
            )


def train_agent(
    world: AbstractWorld,
    settings: AgentSettings = DEFAULTS,
    *,
    task: Task | None = None,
    hooks: Hooks | None = None,
    key: Key,
) -> TrainedAgent:
    r"""Train a policy that seeks empowered states of a world.

    Karl et al. (2018), Algorithm 1: ascend $\sum_t \beta \hat{\mathcal{E}}(z_t) -
    \mathrm{KL}(\pi(u_t|z_t) \| \mathcal{N}(0, I))$ along rollouts of the policy.

    Deviation: unless `settings.joint`, the channel is trained first, for the whole region, and
    the policy ascends a network that is fitted to its bound.

    Args:
        world: Any world; `Bounded` squashes its actions if they are not squashed yet.
        settings: Hyperparameters.
        task: What counts beside empowerment.
        hooks: Where stages are observed and stored; nowhere by default.
        key: Consumed.
    """
    keys = jax.random.split(key, 3)
    return train_stages(world, settings, hooks or _NoHooks(), *keys, task=task)


def train_stages(
    world: AbstractWorld,
    settings: AgentSettings,
    hooks: Hooks,
    channel_key: Key,
    surrogate_key: Key,
    policy_key: Key,
    *,
    task: Task | None = None,
) -> TrainedAgent:
    """Train channel, fit and policy, one after the other, each with a key of its own."""
    settings.check()
    world = world if isinstance(world, Bounded) else Bounded(world)
    settings = with_steps(settings, world)
    if world.actions.choices and (settings.joint or not settings.critic):
        raise ValueError(
            "Expected a critic, and channel and policy trained one after the other, since actions "
            "are discrete: no gradient goes through them."
        )

    # The channel: source and planning ascend the bound (eq:vi_bound) at states from everywhere.
    untrained_key, channel_key = jax.random.split(channel_key)
    untrained = untrained_channel(world, settings, key=untrained_key)

    def channel_stage(callback: Callback) -> tuple[AbstractChannel, dict[str, Any]]:
        updates = settings.channel_updates
        trained = train_channel(
            untrained, world, num_updates=updates, callback=callback, key=channel_key
        )
        return trained.model, {"stopped": trained.stopped, "history": trained.history}

    channel = hooks.stage("channel", untrained, channel_stage)

    # The fit: a network that returns the bound of the trained channel, much faster.
    fit = None
    sizes = {"num_states": settings.bound_states, "width": settings.width, "depth": settings.depth}
    if not settings.joint:

        def surrogate_stage(callback: Callback) -> tuple[Fit, dict[str, Any]]:
            return fit_surrogate(channel, world, **sizes, key=surrogate_key)

        fit = hooks.stage("surrogate", unfitted(world, settings), surrogate_stage)

    # The policy: ascend the bound along its own rollouts, jointly with the channel if so set.
    fresh_key, policy_key = jax.random.split(policy_key)
    typical = jnp.zeros(()) if fit is None else fit.surrogate.mean
    fresh = untrained_agent(world, settings, channel, typical, key=fresh_key)
    rising = np.clip(np.arange(settings.policy_updates) / settings.rise, 0, 1)

    def policy_stage(callback: Callback) -> tuple[Agent, dict[str, Any]]:
        trained = train_policy(
            fresh,
            world,
            fit,
            channel=channel,
            betas=settings.first_beta + (settings.last_beta - settings.first_beta) * rising,
            num_starts=settings.num_starts,
            horizon=settings.horizon,
            learning_rate=settings.learning_rate,
            discount=settings.discount,
            task=task,
            callback=callback,
            key=policy_key,
        )
        return trained.model, {"history": trained.history, "warning": warning(trained)}

    surrogate = None if fit is None else fit.surrogate
    agent = hooks.stage("policy", replace(fresh, surrogate=surrogate), policy_stage)
    channel = agent.channel or channel
    if not settings.joint:
        return TrainedAgent(world, channel, agent.surrogate, agent.policy, task=task)

    # The policy did not need the fit, but whoever asks for the empowerment of a state does.
    def bound_stage(callback: Callback) -> tuple[Fit, dict[str, Any]]:
        return fit_bound(channel, world, **sizes, key=surrogate_key)

    fit = hooks.stage("surrogate", unfitted(world, settings), bound_stage)
    return TrainedAgent(world, channel, fit.surrogate, agent.policy, task=task)


def with_steps(settings: AgentSettings, world: AbstractWorld) -> AgentSettings:
    """Return settings whose plans have a number of steps: it depends on the world alone."""
    if settings.steps != "auto":
        return settings
    return replace(settings, steps=plan_length(world, key=jax.random.key(0)))


def untrained_channel(world: Bounded, settings: AgentSettings, *, key: Key) -> AbstractChannel:
    """Build an untrained channel."""
    return make_channel(
        world,
        family=settings.family,
        steps=settings.num_steps,
        width=settings.width,
        depth=settings.depth,
        trial_updates=settings.channel_updates,
        key=key,
    )


def untrained_surrogate(world: Bounded, settings: AgentSettings) -> Surrogate:
    """Build an untrained surrogate, of zeros: its size is what matters."""
    zero = jnp.zeros(())
    sizes = {"width": settings.width, "depth": settings.depth}
    return unfitted_surrogate(world.states, zero, zero, **sizes, key=jax.random.key(0))


def unfitted(world: Bounded, settings: AgentSettings) -> Fit:
    """Build an untrained surrogate, with what it would be fitted to."""
    count = settings.bound_states
    data = Evaluated(jnp.zeros((count, world.states.size)), jnp.zeros(count))
    return Fit(untrained_surrogate(world, settings), data)


def untrained_agent(
    world: Bounded, settings: AgentSettings, channel: AbstractChannel, typical: Scalar, *, key: Key
) -> Agent:
    """Build an untrained policy, with a critic and the channel as the settings ask."""
    policy_key, critic_key = jax.random.split(key)
    sizes = {"width": settings.width, "depth": settings.depth}
    return Agent(
        Policy(
            world.states,
            world.actions.size,
            choices=world.actions.choices,
            **sizes,
            key=policy_key,
        ),
        channel if settings.joint else None,
        Critic(world.states, typical, **sizes, key=critic_key) if settings.critic else None,
    )
