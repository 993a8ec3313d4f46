"""Policy, value function and differentiable rollouts."""

import math
from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from empowerment.distributions import Gaussian, divergence_from_standard
from empowerment.networks import Network, network
from empowerment.types import Action, Key, Scalar, State
from empowerment.worlds import AbstractWorld, Box

LOG_SCALES = (-4.0, 1.0)
"""Bounds of the log-scale of a policy; a controller must apply the same."""


@runtime_checkable
class Bound(Protocol):
    """An estimator of the bound on empowerment: a channel, or a surrogate of one."""

    def information(self, world: AbstractWorld, state: State, *, key: Key) -> Scalar:
        """Estimate the bound, in nats."""
        ...


class Policy(eqx.Module):
    r"""The policy $\pi(u|z)$, a Gaussian before the squash.

    Karl et al. (2018), App. A.3.1: "128 tanh + ... + {identity, exp}".

    Deviation: the log-scale is bounded smoothly, between `LOG_SCALES`.

    Args:
        states: The region that is scaled to order one for the network.
        action_size: The number of axes of an action.
        width: The size of a hidden layer.
        depth: The number of hidden layers.
        key: Consumed.
    """

    network: Network
    states: Box

    def __init__(
        self, states: Box, action_size: int, *, width: int = 128, depth: int = 2, key: Key
    ):
        self.states = states
        self.network = network(
            states.feature_size, 2 * action_size, width=width, depth=depth, key=key
        )

    def __call__(self, state: State) -> Gaussian:
        """Return the distribution of actions at a state."""
        mean, raw = jnp.split(self.network(self.states.features(state)), 2)
        low, high = LOG_SCALES
        # The initial scale is nearly one, that of the prior.
        share = jax.nn.sigmoid(raw + math.log(-low / high))
        return Gaussian(mean, jnp.exp(low + (high - low) * share))


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
        divergences: The divergence of the policy from its prior, at each state but the last.
    """

    states: Float[Array, "times state"]
    divergences: Float[Array, " steps"]


def rollout(
    policy: Policy, world: AbstractWorld, state: State, *, horizon: int, key: Key
) -> Rollout:
    r"""Sample a rollout of a policy in a world, differentiably.

    $z_{1:T}, u_{1:T-1} \sim \rho(z_1) \prod_t p(z_{t+1}|z_t, u_t)\, \pi(u_t|z_t)$: the first
    lines of Karl et al. (2018), Algorithm 1.

    Args:
        policy: The policy.
        world: A world whose actions live before the squash.
        state: The start state.
        horizon: The number of actions.
        key: Consumed.

    Returns:
        The states and the divergences of the policy from $\mathcal{N}(0, I)$.
    """

    def step(state: State, noise: tuple[Action, State]) -> tuple[State, tuple[State, Scalar]]:
        choice = policy(state)
        transition = world.transition(state, choice.mean + choice.scale * noise[0])
        successor = transition.mean + transition.scale * noise[1]
        return successor, (successor, divergence_from_standard(choice))

    # All noise is drawn at once: splitting a key per step costs more than the step.
    action_key, successor_key = jax.random.split(key)
    noise = (
        jax.random.normal(action_key, (horizon, world.actions.size), state.dtype),
        jax.random.normal(successor_key, (horizon, state.size), state.dtype),
    )
    _, (successors, divergences) = jax.lax.scan(step, state, noise)
    return Rollout(jnp.concatenate([state[None], successors]), divergences)
