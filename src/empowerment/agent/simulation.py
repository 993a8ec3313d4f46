"""Episodes in the environment of a known world, all at once in one compiled program."""

from collections.abc import Sequence

import equinox as eqx
import gymnasium
import gymnasium.wrappers
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt32

from empowerment.agent.acting import PolicyActor, action_noise
from empowerment.agent.training import TrainedAgent
from empowerment.data import Episode, RandomActor, ZeroActor
from empowerment.distributions import Gaussian
from empowerment.environments import WorldEnv
from empowerment.environments.world_env import follow
from empowerment.policy import Policy
from empowerment.types import Observation, State
from empowerment.worlds import AbstractWorld, Bounded

_WRAPPERS = (
    gymnasium.wrappers.OrderEnforcing,
    gymnasium.wrappers.PassiveEnvChecker,
    gymnasium.wrappers.TimeLimit,
)
"""Wrappers that change nothing but the length of an episode."""


def can_simulate(agent: TrainedAgent, environment: gymnasium.Env) -> bool:
    """Return whether an environment is a known world whose state the agent observes."""
    while isinstance(environment, _WRAPPERS):
        environment = environment.env
    observes = agent.model is None and agent.num_agents == 1
    return isinstance(environment, WorldEnv) and observes and not agent.world.actions.choices


def simulate(
    agent: TrainedAgent,
    environment: gymnasium.Env,
    actor: PolicyActor | RandomActor | ZeroActor,
    *,
    seeds: Sequence[int],
    starts: Float[np.ndarray, "episodes state"] | None = None,
    steps: int,
) -> list[Episode]:
    """Run episodes as the environment does, with the same random numbers.

    Args:
        agent: The agent.
        environment: An environment that `can_simulate` accepts.
        actor: The agent's, or one whose actions depend on no observation.
        seeds: Random seed of each episode.
        starts: Start states; by default as the environment samples them.
        steps: Number of actions of an episode.
    """
    inner = environment.unwrapped
    assert isinstance(inner, WorldEnv)
    own_actions = np.full((steps, inner.world.actions.size), np.nan, np.float32)
    states, observations, given, entropy = [], [], [], []
    for index, seed in enumerate(seeds):
        options = None if starts is None else {"state": starts[index]}
        observations.append(environment.reset(seed=seed, options=options)[0])
        states.append(inner.state)
        entropy.append(inner.np_random.integers(2**32, size=(steps, 2), dtype=np.uint32))
        actor.reset(seed=seed)
        given.append(own_actions if isinstance(actor, PolicyActor) else actor.ahead(steps))
    actions, later = _episodes(
        agent.policy,
        agent.world,
        (inner.world, inner.periodic),
        jnp.asarray(np.stack(states), float),
        jnp.asarray(np.stack(observations), float),
        jnp.asarray(np.stack(given), float),
        np.stack(entropy),
        np.asarray(seeds),
        jnp.asarray(isinstance(actor, PolicyActor) and actor.sample, float),
    )
    if not np.isfinite(actions).all():
        raise ValueError("Expected the policy to give finite numbers; got some that are not.")
    seen = np.concatenate([np.stack(observations)[:, None], later], axis=1)
    return [
        Episode(*rows, terminated=False, truncated=True)
        for rows in zip(seen, np.asarray(actions), strict=True)
    ]


@eqx.filter_jit
def _episodes(
    policy: Policy,
    world: Bounded,
    place: tuple[AbstractWorld, tuple[bool, ...]],
    states: Float[Array | np.ndarray, "episodes state"],
    observations: Float[Array | np.ndarray, "episodes observation"],
    given: Float[Array | np.ndarray, "episodes steps action"],
    entropy: UInt32[Array | np.ndarray, "episodes steps 2"],
    seeds: Array | np.ndarray,
    share: Float[Array, ""],
) -> tuple[Float[Array, "episodes steps action"], Float[Array, "episodes steps observation"]]:
    """Return actions and observations; actions that are given as NaN are those of the policy."""
    limits = place[0].actions

    def step(carry: tuple[State, Observation], inputs: tuple[Array, Array, Array]) -> tuple:
        state, observation = carry
        given, entropy, noise = inputs
        choice = policy(observation)
        assert isinstance(choice, Gaussian)
        own = world.squash(choice.mean + share * choice.scale * noise)
        action = jnp.clip(jnp.where(jnp.isnan(given), own, given), limits.low, limits.high)
        state, observation = follow(*place, state, action, entropy)
        return (state, observation), (action, observation)

    def episode(state, observation, given, entropy, seed):
        times = jnp.arange(len(given))
        noise = action_noise(seed, times, 1, world.actions.size, is_discrete=False)[:, 0]
        return jax.lax.scan(step, (state, observation), (given, entropy, noise))[1]

    return jax.vmap(episode)(states, observations, given, entropy, seeds)
