"""A check that futures depend continuously on plans."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from empowerment.types import Key, Plan, Scalar, State
from empowerment.worlds import AbstractWorld, mean_observation, switching_plans

_NUM_SEGMENTS, _NUM_SEGMENT_POINTS, _NUM_HALVINGS = 128, 33, 14
"""Pairs of plans between which jumps are sought, points between them, and bisections."""

_LARGEST_GAP = 0.1
"""Largest gap that rounding and steep slopes may leave, in standard deviations."""


def check_continuous(
    world: AbstractWorld,
    states: Float[Array, "states state"],
    scale: Float[Array, " axes"],
    *,
    steps: int,
    key: Key,
) -> None:
    """Check that futures do not jump where plans change a little, so that sets may be filled.

    Between pairs of random plans, the largest gap of the futures is bisected again and again; a
    gap that remains is a jump. The futures of a single action need no filling, so they may jump.

    Raises:
        ValueError: If a jump was found.
    """
    if steps * world.actions.size == 1:
        return
    gap = np.asarray(_largest_gap(world, states, scale, steps, key))
    if not gap.max() <= _LARGEST_GAP:
        state = np.asarray(states)[gap.argmax()].tolist()
        raise ValueError(
            "Expected the perceived future to depend continuously on the plan for an exact "
            f"capacity; it jumps by {gap.max():.2g} standard deviations of the noise at state "
            f"{state}. Use the variational estimator."
        )


@eqx.filter_jit
def _largest_gap(
    world: AbstractWorld,
    states: Float[Array, "states state"],
    scale: Float[Array, " axes"],
    steps: int,
    key: Key,
) -> Float[Array, " states"]:
    """Compute the largest gap of futures between nearly equal plans from each state."""
    plans = switching_plans(world.actions, steps, 2 * _NUM_SEGMENTS, key=key)
    shares = jnp.linspace(0.0, 1.0, _NUM_SEGMENT_POINTS)

    def of_segment(state: State, one: Plan, other: Plan) -> Scalar:
        def future(share: Scalar) -> Float[Array, " axes"]:
            return mean_observation(world, state, one + share * (other - one)) / scale

        def gap(low: Scalar, high: Scalar) -> Scalar:
            return jnp.linalg.norm(future(high) - future(low))

        def halve(_: Array, ends: tuple[Scalar, Scalar]) -> tuple[Scalar, Scalar]:
            low, high = ends
            middle = 0.5 * (low + high)
            is_lower = gap(low, middle) > gap(middle, high)
            return jnp.where(is_lower, low, middle), jnp.where(is_lower, middle, high)

        widest = jnp.argmax(jax.vmap(gap)(shares[:-1], shares[1:]))
        ends = shares[widest], shares[widest + 1]
        return gap(*jax.lax.fori_loop(0, _NUM_HALVINGS, halve, ends))

    of_pairs = jax.vmap(of_segment, in_axes=(None, 0, 0))
    ones, others = plans[:_NUM_SEGMENTS], plans[_NUM_SEGMENTS:]
    return jax.lax.map(lambda state: of_pairs(state, ones, others).max(), states)
