"""Base classes of channels, sources and planning, and the scaling of their inputs."""

import math
from abc import abstractmethod
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from empowerment.distributions import AbstractDistribution
from empowerment.types import Key, Observation, Plan, Scalar, State
from empowerment.worlds import AbstractWorld, Box, mean_observation, observation_density

Features = Float[Array, " features"]
"""A state as input of networks."""

Code = Float[Array, " code"]
"""A sample of a source, decoded by planning; in the paper's families the plan itself."""

_NUM_PROBES = 4096
"""Random futures from which the whitening of successors is estimated."""


class Inputs(eqx.Module):
    """Scaling of network inputs: states and successors of order one, in any units.

    Attributes:
        states: The region that is scaled to order one; angles become cosine and sine.
        whitener: The matrix that whitens successors relative to that of the zero plan.
    """

    states: Box
    whitener: Float[Array, "observation observation"]

    @property
    def size(self) -> int:
        """The number of features of a state."""
        return self.states.feature_size

    def features(self, state: State) -> Features:
        """Compute the features of a state; an angle becomes its cosine and sine."""
        return self.states.features(state)

    def relative(
        self, world: AbstractWorld, state: State, successor: Observation, steps: int
    ) -> Observation:
        """Whiten a successor, relative to the successor of the zero plan."""
        still = mean_observation(world, state, jnp.zeros((steps, world.actions.size), state.dtype))
        return jax.lax.stop_gradient(self.whitener) @ (successor - still)


def fit_inputs(world: AbstractWorld, *, steps: int, key: Key) -> Inputs:
    """Estimate the input scaling of a world from random plans at random states.

    Args:
        world: A world whose actions live before the squash.
        steps: The number of actions in a plan.
        key: Consumed.
    """
    return Inputs(world.states, _whitener(world, steps, key))


@eqx.filter_jit
def _whitener(
    world: AbstractWorld, steps: int, key: Key
) -> Float[Array, "observation observation"]:
    """Estimate the whitening matrix of futures of random plans, relative to the zero plan."""
    still = jnp.zeros((steps, world.actions.size))

    def probe(key: Key) -> Observation:
        state_key, plan_key = jax.random.split(key)
        state = world.state_distribution().sample(key=state_key)
        plan = jax.random.normal(plan_key, still.shape)
        return mean_observation(world, state, plan) - mean_observation(world, state, still)

    offsets = jax.vmap(probe)(jax.random.split(key, _NUM_PROBES))
    scale = observation_density(world, world.states.centre, still).scale
    covariance = offsets.T @ offsets / _NUM_PROBES + jnp.diag(scale**2)
    return jnp.linalg.inv(jnp.linalg.cholesky(covariance))


class Estimate(eqx.Module):
    """A Monte Carlo estimate.

    Attributes:
        value: The mean, in nats.
        standard_error: The standard error of the mean.
    """

    value: Scalar
    standard_error: Scalar

    @staticmethod
    def of(draws: Float[Array, " draws"]) -> "Estimate":
        """Compute mean and standard error of independent samples."""
        return Estimate(draws.mean(), jnp.std(draws, ddof=1) / math.sqrt(draws.size))


class AbstractChannel(eqx.Module):
    """A channel from plans to perceived futures, with trainable parameters."""

    is_bound: ClassVar[bool] = True
    """Whether its value is never above the capacity."""

    is_trained: ClassVar[bool] = True
    """Whether there is anything to train."""

    steps: eqx.AbstractVar[int]
    """The number of actions in a plan."""

    inputs: eqx.AbstractVar[Inputs]
    """The scaling of network inputs."""

    @abstractmethod
    def draw(self, state: State, *, key: Key) -> Plan:
        r"""Sample a plan from the source, $u_{1:n} \sim \omega(\cdot|z)$."""

    @abstractmethod
    def draw_many(
        self, state: State, count: int, *, key: Key
    ) -> tuple[Float[Array, "plans steps action"], Float[Array, " plans"]]:
        """Return plans with log-weights that represent the source."""

    @abstractmethod
    def information(self, world: AbstractWorld, state: State, *, key: Key) -> Scalar:
        r"""Compute an unbiased one-sample estimate of a lower bound of $I(x', u_{1:n} | z)$."""

    @abstractmethod
    def estimate(
        self, world: AbstractWorld, state: State, *, num_samples: int, key: Key
    ) -> Estimate:
        """Estimate the same bound from many samples."""


class AbstractSource(eqx.Module):
    r"""The source $\omega(u_{1:n}|z)$: a distribution of codes, and the map from codes to plans."""

    @abstractmethod
    def __call__(self, features: Features) -> AbstractDistribution:
        """Return the distribution of codes at a state."""

    @abstractmethod
    def plan(self, features: Features, code: Code) -> Plan:
        """Return the plan of a code."""


class AbstractPlanning(eqx.Module):
    r"""Planning $q(u_{1:n}|z, x')$: the posterior of codes given the perceived successor."""

    @abstractmethod
    def __call__(self, features: Features, successor: Observation) -> AbstractDistribution:
        """Return the distribution of codes at a state, given the successor."""
