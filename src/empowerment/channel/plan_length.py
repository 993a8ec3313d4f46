"""How long plans should be, from how fast differences grow in a world."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from empowerment.types import Action, Key, Scalar, State
from empowerment.worlds import AbstractWorld, Bounded

_GROWTH = 8.0
"""Factor by which differences grow during a plan: three bits."""

_SHARE = 0.1
"""Share of all states in which they do so."""

_LONGEST = 16
"""Most steps of a plan: a rollout of the policy is as long."""

_NUM_STATES = 4096
"""States at which the growth is measured, each with a plan of its own."""

_AT_ONCE = 64


def plan_length(world: AbstractWorld, *, key: Key) -> int:
    r"""Choose the number of steps of a plan: until differences have grown by a factor of eight.

    During a plan of $n$ steps, differences that can just be told apart grow by
    $\sigma_{\max}(\Sigma_n^{-1} C_n A_{n-1} \cdots A_0 C_0^{-1} \Sigma_0)$, with derivatives $A$ of
    the transition and $C$ of the emission, and scales $\Sigma$ of the perceived noise. In shorter
    plans, states differ by little but the strength of the actuators; in much longer ones, the
    future depends on the plan more than on the state, and all states are alike. The number is the
    first at which the growth is eight in a tenth of all states, along random plans, or 16.

    Args:
        world: A world whose state can be read from its mean observation.
        key: Consumed.
    """
    world = world.world if isinstance(world, Bounded) else world
    sizes = world.states.size, world.emission(world.states.low).mean.size
    if sizes[0] != sizes[1]:
        raise ValueError(
            "Expected a world that perceives as many axes as its state has, to choose the length "
            f"of plans by how fast differences grow; got {sizes[1]} of {sizes[0]}. Set the number "
            "of steps."
        )
    growths = jnp.quantile(_growths(world, key=key), 1 - _SHARE, axis=0)
    grown = jnp.append(growths[:-1] >= _GROWTH, True)
    return int(jnp.argmax(grown)) + 1


@eqx.filter_jit
def _growths(world: AbstractWorld, *, key: Key) -> Float[Array, "states steps"]:
    """Compute the growth of perceived differences after each step, from many states."""

    def one(key: Key) -> Float[Array, " steps"]:
        state_key, plan_key = jax.random.split(key)
        low, high = world.actions.low, world.actions.high
        shape = _LONGEST, world.actions.size
        plan = jax.random.uniform(plan_key, shape, minval=low, maxval=high)
        if world.actions.choices:
            plan = jax.vmap(world.actions.choose)(plan)
        start = world.state_distribution().sample(key=state_key)
        told_apart = jnp.linalg.inv(_perceived(world, start))

        def step(
            carry: tuple[State, Float[Array, "state axes"]], action: Action
        ) -> tuple[tuple[State, Float[Array, "state axes"]], Scalar]:
            state, differences = carry
            derivative = jax.jacfwd(lambda state: world.transition(state, action).mean)(state)
            state, differences = world.transition(state, action).mean, derivative @ differences
            seen = _perceived(world, state) @ differences
            return (state, differences), jnp.linalg.norm(seen, ord=2)

        return jax.lax.scan(step, (start, told_apart), plan)[1]

    return jax.lax.map(one, jax.random.split(key, _NUM_STATES), batch_size=_AT_ONCE)


def _perceived(world: AbstractWorld, state: State) -> Float[Array, "axes state"]:
    """Compute the derivative of what is perceived, in units of its noise."""
    derivative = jax.jacfwd(lambda state: world.emission(state).mean)(state)
    return derivative / world.emission(state).scale[:, None]
