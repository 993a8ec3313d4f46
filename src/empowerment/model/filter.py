"""Keeping track of a state from what is observed."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from empowerment.model.dvbf import DVBF
from empowerment.types import Action, Observation, State


class Filter(eqx.Module):
    r"""The recognition model as a filter: predict, measure, fuse, each in constant time.

    Karl et al. (2018), Sec. 2.4: it keeps the state from diverging from that of the environment.
    Observations and actions are in the units of the data; the state is the mean of the belief.

    Attributes:
        model: The model.
    """

    model: DVBF

    def init(self, observations: Float[Array, "first observation"]) -> State:
        """Give the state after the first observations, as many as the model recognises it from."""
        first = self.model.observations.scaled(observations)
        return self.model.start(self.model.recognise(first).mean)

    def update(self, state: State, action: Action, observation: Observation) -> State:
        """Give the state after an action and what was observed then.

        If the observation is missing, any number in it not finite, the state is predicted.

        Args:
            state: Before the action.
            action: What was done.
            observation: What was seen afterwards.

        Returns:
            The state afterwards.
        """
        expected = self.model.step(state, self.model.actions.scaled(action))
        is_there = jnp.all(jnp.isfinite(observation))
        seen = jnp.where(is_there, observation, self.model.observations.offset)
        measured = self.model.measure(self.model.observations.scaled(seen))
        belief = self.model.fuse(expected, measured)
        return jnp.where(is_there, belief.mean, expected.mean)

    def run(
        self,
        observations: Float[Array, "times observation"],
        actions: Float[Array, "steps action"],
    ) -> Float[Array, "times state"]:
        """Filter a whole sequence; until the first state is recognised it stays as it is then."""
        num_initial = self.model.num_initial
        start = self.init(observations[:num_initial])

        def step(state: State, inputs: tuple[Action, Observation]) -> tuple[State, State]:
            state = self.update(state, *inputs)
            return state, state

        rest = jax.lax.scan(step, start, (actions, observations[1:]))[1]
        return jnp.concatenate([start[None], rest])
