"""Policy, value function and differentiable rollouts."""

import math
from functools import partial
from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Num

from empowerment.distributions import AbstractDistribution, Gaussian, divergence_from_standard
from empowerment.networks import Network, network
from empowerment.types import Action, Key, Scalar, State
from empowerment.worlds import AbstractWorld, Box, discrete

LOG_SCALES = (-4.0, 1.0)
"""Bounds of the log-scale of a policy; a controller must apply the same."""

UNIFORM_SHARE = 0.01
"""Share of the uniform distribution in that of discrete actions; a controller applies the same."""


@runtime_checkable
class Bound(Protocol):
    """An estimator of the bound on empowerment: a channel, or a surrogate of one."""

    def information(self, world: AbstractWorld, state: State, *, key: Key) -> Scalar:
        """Estimate the bound, in nats."""
        ...


class Choice(AbstractDistribution):
    """A distribution of discrete actions, as scores before the squash.

    Squashed, the scores themselves are the likeliest action, and scores with Gumbel noise are a
    sample. A hundredth of each distribution is uniform.

    Attributes:
        mean: The log-probability of each choice.
        actions: The actions.
    """

    mean: Float[Array, " size"]
    actions: Box

    def __init__(self, raw: Float[Array, " size"], actions: Box):
        def mixed(part: Float[Array, " choices"]) -> Float[Array, " choices"]:
            return jnp.log((1 - UNIFORM_SHARE) * jax.nn.softmax(part) + UNIFORM_SHARE / part.size)

        self.mean = jnp.concatenate(list(map(mixed, actions.split(raw))))
        self.actions = actions

    def sample(self, *, key: Key) -> Float[Array, " size"]:
        """Sample scores."""
        return self.mean + jax.random.gumbel(key, self.mean.shape, self.mean.dtype)

    def log_prob(self, value: Num[Array, "..."]) -> Scalar:
        """Compute the log-probability of the action that is chosen by some scores."""
        return self.mean @ self.actions.choose(value)

    def divergence_from_uniform(self) -> Scalar:
        """Return the divergence from the uniform distribution."""
        most = sum(math.log(count) for count in self.actions.choices)
        return most + jnp.sum(jnp.exp(self.mean) * self.mean)


class Policy(eqx.Module):
    r"""The policy $\pi(u|z)$, a Gaussian before the squash, or a choice of discrete actions.

    Karl et al. (2018), App. A.3.1: "128 tanh + ... + {identity, exp}".

    Deviation: the log-scale is bounded smoothly, between `LOG_SCALES`.

    Args:
        states: The region that is scaled to order one for the network.
        action_size: The number of axes of an action.
        choices: Of discrete actions, the number of choices of each.
        width: The size of a hidden layer.
        depth: The number of hidden layers.
        key: Consumed.
    """

    network: Network
    states: Box
    choices: tuple[int, ...] = eqx.field(static=True)

    def __init__(
        self,
        states: Box,
        action_size: int,
        *,
        choices: tuple[int, ...] = (),
        width: int = 128,
        depth: int = 2,
        key: Key,
    ):
        self.states = states
        self.choices = choices
        out_size = action_size if choices else 2 * action_size
        self.network = network(states.feature_size, out_size, width=width, depth=depth, key=key)

    def __call__(self, state: State) -> Gaussian | Choice:
        """Return the distribution of actions at a state."""
        output = self.network(self.states.features(state))
        if self.choices:
            return Choice(output, discrete(*self.choices))
        mean, raw = jnp.split(output, 2)
        low, high = LOG_SCALES
        # The initial scale is nearly one, that of the prior.
        share = jax.nn.sigmoid(raw + math.log(-low / high))
        return Gaussian(mean, jnp.exp(low + (high - low) * share))


def divergence_from_prior(choice: Gaussian | Choice) -> Scalar:
    """Return the divergence of a policy from its prior: standard normal, or uniform."""
    if isinstance(choice, Gaussian):
        return divergence_from_standard(choice)
    return choice.divergence_from_uniform()


class Critic(eqx.Module):
    r"""Value function of what follows the horizon, as a discounted mean in nats per step.

    Args:
        states: The region that is scaled to order one for the network.
        typical: A typical bound of the world, the initial value.
        width: The size of a hidden layer.
        depth: The number of hidden layers.
        key: Consumed.
    """

    network: Network
    states: Box
    typical: Scalar

    def __init__(self, states: Box, typical: Scalar, *, width: int = 128, depth: int = 2, key: Key):
        self.states = states
        self.typical = typical
        self.network = network(states.feature_size, 1, width=width, depth=depth, key=key)

    def __call__(self, state: State) -> Scalar:
        """Return the value of a state."""
        return jax.lax.stop_gradient(self.typical) + self.network(self.states.features(state))[0]


class Rollout(eqx.Module):
    """A rollout of a policy.

    Attributes:
        states: The visited states, start included: one more than actions.
        actions: The actions, before the squash.
        divergences: The divergence of the policy from its prior, at each state but the last.
    """

    states: Float[Array, "times state"]
    actions: Float[Array, "steps action"]
    divergences: Float[Array, " steps"]


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def clip_adjoint(state: State, limit: float) -> State:
    """Return a state as it is; what goes back through it has at most a certain norm."""
    return state


def _forward(state: State, limit: float) -> tuple[State, None]:
    return state, None


def _backward(limit: float, residual: None, adjoint: State) -> tuple[State]:
    norm = jnp.linalg.norm(adjoint)
    clipped = adjoint / jnp.maximum(1.0, norm / limit)
    return (jnp.where(jnp.isfinite(norm), clipped, 0.0),)


clip_adjoint.defvjp(_forward, _backward)


def rollout(
    policy: Policy,
    world: AbstractWorld,
    state: State,
    *,
    horizon: int,
    adjoint_limit: float = math.inf,
    key: Key,
) -> Rollout:
    r"""Sample a rollout of a policy in a world, differentiably.

    $z_{1:T}, u_{1:T-1} \sim \rho(z_1) \prod_t p(z_{t+1}|z_t, u_t)\, \pi(u_t|z_t)$: the first
    lines of Karl et al. (2018), Algorithm 1.

    Args:
        policy: The policy.
        world: A world whose actions live before the squash.
        state: The start state.
        horizon: The number of actions.
        adjoint_limit: Maximal norm of what goes back through each state, in training: where a
            world is unstable, it grows from step to step.
        key: Consumed.

    Returns:
        The states, the actions, and the divergences of the policy from $\mathcal{N}(0, I)$.
    """

    def step(
        state: State, noise: tuple[Action, State]
    ) -> tuple[State, tuple[State, Action, Scalar]]:
        if math.isfinite(adjoint_limit):
            state = clip_adjoint(state, adjoint_limit)
        choice = policy(state)
        scale = choice.scale if isinstance(choice, Gaussian) else 1.0
        action = choice.mean + scale * noise[0]
        transition = world.transition(state, action)
        successor = transition.mean + transition.scale * noise[1]
        return successor, (successor, action, divergence_from_prior(choice))

    # All noise is drawn at once: splitting a key per step costs more than the step.
    action_key, successor_key = jax.random.split(key)
    draw = jax.random.gumbel if policy.choices else jax.random.normal
    noise = (
        draw(action_key, (horizon, world.actions.size), state.dtype),
        jax.random.normal(successor_key, (horizon, state.size), state.dtype),
    )
    _, (successors, actions, divergences) = jax.lax.scan(step, state, noise)
    return Rollout(jnp.concatenate([state[None], successors]), actions, divergences)
