"""What a channel is: a source of plans, and a way to read them off the future."""

import math
from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from empowerment.distributions import AbstractDistribution
from empowerment.types import Key, Observation, Plan, Scalar, State
from empowerment.worlds import AbstractWorld, Box, mean_observation, observation_density

Features = Float[Array, " features"]
"""A state as networks see it."""

Code = Float[Array, " code"]
"""What a source draws and planning reads: in the paper's families the plan itself."""

_NUM_PROBES = 4096
"""Futures from which the scale of what planning reads is taken."""


class Inputs(eqx.Module):
    """What networks see: states and successors of order one, whatever the world's units.

    Attributes:
        states: The region that is scaled to order one; its angles become cosine and sine.
        whitener: Makes the successor, relative to that of the zero plan, white.
    """

    states: Box
    whitener: Float[Array, "observation observation"]

    @property
    def size(self) -> int:
        """The number of features of a state."""
        return self.states.feature_size

    def features(self, state: State) -> Features:
        """Scale a state; an angle becomes its cosine and sine."""
        return self.states.features(state)

    def relative(
        self, world: AbstractWorld, state: State, successor: Observation, steps: int
    ) -> Observation:
        """Scale a successor, relative to what the zero plan would lead to."""
        still = mean_observation(world, state, jnp.zeros((steps, world.actions.size), state.dtype))
        return jax.lax.stop_gradient(self.whitener) @ (successor - still)


def fit_inputs(world: AbstractWorld, *, steps: int, key: Key) -> Inputs:
    """Find the scales of a world by trying random plans at random states.

    Args:
        world: A world whose actions live before the squash.
        steps: The number of actions in a plan.
        key: Consumed.

    Returns:
        The scales.
    """
    return Inputs(world.states, _whitener(world, steps, key))


@eqx.filter_jit
def _whitener(
    world: AbstractWorld, steps: int, key: Key
) -> Float[Array, "observation observation"]:
    """Try random plans at random states: how far from the zero plan's future do they end?"""
    still = jnp.zeros((steps, world.actions.size))

    def probe(key: Key) -> Observation:
        state_key, plan_key = jax.random.split(key)
        state = world.state_distribution().sample(key=state_key)
        plan = jax.random.normal(plan_key, still.shape)
        return mean_observation(world, state, plan) - mean_observation(world, state, still)

    offsets = jax.vmap(probe)(jax.random.split(key, _NUM_PROBES))
    scale = observation_density(world, world.states.centre, still).scale
    spread = offsets.T @ offsets / _NUM_PROBES + jnp.diag(scale**2)
    return jnp.linalg.inv(jnp.linalg.cholesky(spread))


class Estimate(eqx.Module):
    """A mean of draws, and how sure it is.

    Attributes:
        value: The mean, in nats.
        standard_error: Of the mean.
    """

    value: Scalar
    standard_error: Scalar

    @staticmethod
    def of(draws: Float[Array, " draws"]) -> "Estimate":
        """Take the mean of independent draws."""
        return Estimate(draws.mean(), jnp.std(draws, ddof=1) / math.sqrt(draws.size))


class AbstractChannel(eqx.Module):
    """A channel from plans to perceived futures, with parameters to be learnt."""

    steps: eqx.AbstractVar[int]
    """The number of actions in a plan."""

    inputs: eqx.AbstractVar[Inputs]
    """What its networks see."""

    @abstractmethod
    def draw(self, state: State, *, key: Key) -> Plan:
        r"""Draw a plan from the source, $u_{1:n} \sim \omega(\cdot|z)$."""

    @abstractmethod
    def draw_many(
        self, state: State, count: int, *, key: Key
    ) -> tuple[Float[Array, "plans steps action"], Float[Array, " plans"]]:
        """Give plans with logarithms of weights that together stand for the source."""

    @abstractmethod
    def information(self, world: AbstractWorld, state: State, *, key: Key) -> Scalar:
        r"""Estimate a lower bound of $I(x', u_{1:n} | z)$ from one draw, without bias."""

    @abstractmethod
    def estimate(
        self, world: AbstractWorld, state: State, *, num_samples: int, key: Key
    ) -> Estimate:
        """Estimate the same bound from many draws."""


class AbstractSource(eqx.Module):
    r"""The source $\omega(u_{1:n}|z)$: a distribution of codes, and what plan a code means."""

    @abstractmethod
    def __call__(self, features: Features) -> AbstractDistribution:
        """Give the distribution of codes at a state."""

    @abstractmethod
    def plan(self, features: Features, code: Code) -> Plan:
        """Give the plan that a code stands for."""


class AbstractPlanning(eqx.Module):
    r"""Planning $q(u_{1:n}|z, x')$: which code may have led to a future."""

    @abstractmethod
    def __call__(self, features: Features, successor: Observation) -> AbstractDistribution:
        """Give the distribution of codes at a state, given the successor."""
