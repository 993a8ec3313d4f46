"""Online state estimation with a model."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from empowerment.model.dvbf import DVBF
from empowerment.types import Action, Observation, State


class Filter(eqx.Module):
    r"""The recognition model as a filter: predict, measure, fuse, each in constant time.

    Karl et al. (2018), Sec. 2.4: it keeps the latent state consistent with the environment.
    Observations and actions are in the units of the data; the state is the mean of the belief.

    Attributes:
        model: The model.
    """

    model: DVBF

    def init(self, observations: Float[Array, "first observation"]) -> State:
        """Infer the state from the first `model.num_initial` observations."""
        first = self.model.observations.scaled(observations)
        return self.model.start(self.model.recognise(first).mean)

    def update(self, state: State, action: Action, observation: Observation) -> State:
        """Update the state by an action and the observation after it.

        If any value of the observation is not finite, it counts as missing and the state is
        predicted without it.

        Args:
            state: The state before the action.
            action: The action.
            observation: The observation after the action.

        Returns:
            The state after the action.
        """
        expected = self.model.step(state, self.model.actions.scaled(action))
        is_present = jnp.all(jnp.isfinite(observation))
        observation = jnp.where(is_present, observation, self.model.observations.offset)
        measured = self.model.measure(self.model.observations.scaled(observation))
        belief = self.model.fuse(expected, measured)
        return jnp.where(is_present, belief.mean, expected.mean)

    def run(
        self,
        observations: Float[Array, "times observation"],
        actions: Float[Array, "steps action"],
    ) -> Float[Array, "times state"]:
        """Filter a sequence, starting from the state inferred from its first observations."""
        num_initial = self.model.num_initial
        start = self.init(observations[:num_initial])

        def step(state: State, inputs: tuple[Action, Observation]) -> tuple[State, State]:
            state = self.update(state, *inputs)
            return state, state

        rest = jax.lax.scan(step, start, (actions, observations[1:]))[1]
        return jnp.concatenate([start[None], rest])


@eqx.filter_jit
def filter_windows(
    model: DVBF,
    observations: Float[Array, "windows times observation"],
    actions: Float[Array, "windows steps action"],
) -> Float[Array, "windows times state"]:
    """Filter many windows of data."""
    return jax.vmap(Filter(model).run)(observations, actions)
