"""A learnt model as a world to imagine in."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from empowerment.distributions import Empirical, Gaussian
from empowerment.model.dvbf import DVBF
from empowerment.types import Action, Observation, State
from empowerment.worlds import AbstractWorld, Box


class LearntWorld(AbstractWorld):
    r"""A world learnt from data: a state is what the filter makes of what was observed.

    What is perceived is $p(x|z)$, the decoder with its learnt noise, in the units of the data;
    differences below the resolution do not count as perceived.

    Deviation: the paper counts information on states. States may store what no observation
    shows, such as the last action, so that information would be counted that nobody perceives;
    `Latent` does it as printed, for comparison.

    Attributes:
        model: The model.
        places: States that the data led through: they stand for the whole world.
        beginnings: States in which episodes began.
        resolution: The scale of the noise on what is perceived, added to what was learnt, for
            each observed channel.
        states: The region of the places.
        actions: What actions are allowed, in the units of the data.
    """

    model: DVBF
    visited_states: Float[Array, "places state"]
    initial_states: Float[Array, "beginnings state"]
    resolution: Observation
    states: Box
    actions: Box

    def initial(self) -> Empirical:
        """Give a state in which an episode of the data began."""
        return Empirical(self.initial_states)

    def state_distribution(self) -> Empirical:
        """Give a state that the data led through."""
        return Empirical(self.visited_states)

    def transition(self, state: State, action: Action) -> Gaussian:
        """Give what the model expects of the successor."""
        return self.model.transition(state, self.model.actions.scaled(action))

    def emission(self, state: State) -> Gaussian:
        """Give what the decoder says, in the units of the data, seen with the resolution."""
        seen = self.model.decode(state)
        units = self.model.observations
        scale = jnp.sqrt((seen.scale * units.scale) ** 2 + self.resolution**2)
        return Gaussian(units.physical(seen.mean), scale)


class Latent(AbstractWorld):
    """A world whose states are perceived as they are: information is counted on states.

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
        """Give the first state of the world within."""
        return self.world.initial()

    def state_distribution(self):
        """Give any state of the world within."""
        return self.world.state_distribution()

    def transition(self, state: State, action: Action) -> Gaussian:
        """Give the successor in the world within."""
        return self.world.transition(state, action)

    def emission(self, state: State) -> Gaussian:
        """Give the state itself."""
        return Gaussian(state, jnp.zeros_like(state))
