"""A learnt model as a world."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from empowerment.distributions import Empirical, Gaussian
from empowerment.model.dvbf import DVBF
from empowerment.types import Action, Observation, State
from empowerment.worlds import AbstractWorld, Box


class LearntWorld(AbstractWorld):
    r"""A world learnt from data; its states are the latent states of the filter.

    Perceived is $p(x|z)$, the decoder with its learnt noise, in the units of the data;
    differences below the resolution do not count.

    Deviation: the paper counts information on latent states. These may store what no
    observation shows, such as the last action, which would count as information that nobody
    perceives; `Latent` does it as printed, for comparison.

    Attributes:
        model: The model.
        visited_states: Filtered states of the data, an empirical sample of the state space.
        initial_states: Filtered states at the start of episodes.
        resolution: The scale of the noise that is added to the learnt observation noise, for
            each observed channel.
        states: The bounding region of the visited states.
        actions: The admissible actions, in the units of the data.
    """

    model: DVBF
    visited_states: Float[Array, "visited state"]
    initial_states: Float[Array, "episodes state"]
    resolution: Observation
    states: Box
    actions: Box

    def initial(self) -> Empirical:
        """Return the empirical distribution of initial states."""
        return Empirical(self.initial_states)

    def state_distribution(self) -> Empirical:
        """Return the empirical distribution of visited states."""
        return Empirical(self.visited_states)

    def transition(self, state: State, action: Action) -> Gaussian:
        """Return the model's distribution of the successor."""
        return self.model.transition(state, self.model.actions.scaled(action))

    def emission(self, state: State) -> Gaussian:
        """Return the decoder's distribution in the units of the data, plus the resolution."""
        decoded = self.model.decode(state)
        units = self.model.observations
        scale = jnp.sqrt((decoded.scale * units.scale) ** 2 + self.resolution**2)
        return Gaussian(units.physical(decoded.mean), scale)


class Latent(AbstractWorld):
    """A world with fully observed states: information is counted on latent states.

    Args:
        world: A learnt world; its transition must be noisy.
    """

    world: AbstractWorld
    states: Box
    actions: Box

    def __init__(self, world: AbstractWorld):
        self.world = world
        self.states = world.states
        self.actions = world.actions

    def initial(self):
        """Return the initial distribution of the wrapped world."""
        return self.world.initial()

    def state_distribution(self):
        """Return the state distribution of the wrapped world."""
        return self.world.state_distribution()

    def transition(self, state: State, action: Action) -> Gaussian:
        """Return the transition of the wrapped world."""
        return self.world.transition(state, action)

    def emission(self, state: State) -> Gaussian:
        """Return the state itself, without noise."""
        return Gaussian(state, jnp.zeros_like(state))
