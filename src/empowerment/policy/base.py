"""What acts: a policy, and what it is judged by."""

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

_LOG_SCALES = (-4.0, 1.0)
"""Where the logarithm of a policy's scale stays."""


@runtime_checkable
class Bound(Protocol):
    """What gives the bound on the empowerment of a state: a channel, or a fit to one."""

    def information(self, world: AbstractWorld, state: State, *, key: Key) -> Scalar:
        """Estimate the bound, in nats."""
        ...


class Policy(eqx.Module):
    r"""The policy $\pi(u|z)$, a Gaussian before the squash.

    Karl et al. (2018), App. A.3.1: "128 tanh + ... + {identity, exp}".

    Deviation: the logarithm of the scale is kept between two limits, smoothly.

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
        """Give the distribution of actions at a state."""
        mean, spread = jnp.split(self.network(self.states.features(state)), 2)
        low, high = _LOG_SCALES
        # At the start the scale is nearly one, the prior's.
        share = jax.nn.sigmoid(spread + math.log(-low / high))
        return Gaussian(mean, jnp.exp(low + (high - low) * share))


class Critic(eqx.Module):
    r"""What is to be had after a horizon, as the mean of the discounted bounds from there on.

    Args:
        states: The region that is scaled to order one for the network.
        typical: A bound that is typical of the world: where training begins.
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
        """Give the mean of what follows a state."""
        return jax.lax.stop_gradient(self.typical) + self.network(self.states.features(state))[0]


class Rollout(eqx.Module):
    """What a policy went through.

    Attributes:
        states: From the start on, one more than actions.
        divergences: Of the policy from its prior, at each state but the last.
    """

    states: Float[Array, "times state"]
    divergences: Float[Array, " steps"]


def rollout(
    policy: Policy, world: AbstractWorld, state: State, *, horizon: int, key: Key
) -> Rollout:
    r"""Follow a policy through the world, differentiably.

    $z_{1:T}, u_{1:T-1} \sim \rho(z_1) \prod_t p(z_{t+1}|z_t, u_t)\, \pi(u_t|z_t)$: the first
    lines of Karl et al. (2018), Algorithm 1.

    Args:
        policy: Whose actions live before the squash.
        world: A world whose actions live before the squash.
        state: Where to start.
        horizon: The number of actions.
        key: Consumed.

    Returns:
        The states and the divergences of the policy from $\mathcal{N}(0, I)$.
    """

    def step(state: State, noise: tuple[Action, State]) -> tuple[State, tuple[State, Scalar]]:
        choice = policy(state)
        given = world.transition(state, choice.mean + choice.scale * noise[0])
        successor = given.mean + given.scale * noise[1]
        return successor, (successor, divergence_from_standard(choice))

    # All noise at once: a key for each step costs more than the step.
    action_key, successor_key = jax.random.split(key)
    noise = (
        jax.random.normal(action_key, (horizon, world.actions.size), state.dtype),
        jax.random.normal(successor_key, (horizon, state.size), state.dtype),
    )
    _, (successors, divergences) = jax.lax.scan(step, state, noise)
    return Rollout(jnp.concatenate([state[None], successors]), divergences)
