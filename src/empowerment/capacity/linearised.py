"""Empowerment of the linearised Gaussian channel, in closed form for any world."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from empowerment.capacity.water_filling import water_filling
from empowerment.types import Action, Plan, Scalar, State
from empowerment.worlds import AbstractWorld

UNIFORM_POWER = 1 / 3
"""The power of an action that is uniform between -1 and 1."""


class LinearChannel(eqx.Module):
    r"""A channel from plans to perceived futures, linearised around one plan.

    $$x' \approx \bar x + G\,(\mathrm{plan} - \overline{\mathrm{plan}}) + \varepsilon,
    \qquad \varepsilon \sim \mathcal{N}(0, N)$$

    Attributes:
        mean: $\bar x$, the mean observation after the plan itself.
        gain: $G$, with the actions of all steps flattened.
        noise: $N$, the propagated process noise plus the noise of the emission.
    """

    mean: Float[Array, " observation"]
    gain: Float[Array, "observation inputs"]
    noise: Float[Array, "observation observation"]


def linearise(world: AbstractWorld, state: State, plan: Plan) -> LinearChannel:
    r"""Linearise a world along a plan, by automatic differentiation.

    With $A_k, B_k$ the derivatives of a successor by state and action, $\Sigma_k$ its noise, and
    $C$ the derivative of what is perceived, the gain has the blocks $C A_n \cdots A_{k+1} B_k$:
    each is that of the step after times $A_{k+1}$, which costs one step's derivatives per step.

    Args:
        world: Any world.
        state: The start state.
        plan: The plan around which to linearise.

    Returns:
        The linear channel.
    """

    def ahead(state: State, action: Action) -> tuple[State, tuple[Array, Array, Array]]:
        successor = world.transition(state, action)
        derivatives = jax.jacfwd(lambda *at: world.transition(*at).mean, argnums=(0, 1))
        return successor.mean, (*derivatives(state, action), successor.scale)

    def back(
        seen: Float[Array, "observation state"], step: tuple[Array, Array, Array]
    ) -> tuple[Float[Array, "observation state"], tuple[Array, Array]]:
        by_state, by_action, scale = step
        noisy = seen * scale[None, :]
        return seen @ by_state, (seen @ by_action, noisy @ noisy.T)

    final, steps = jax.lax.scan(ahead, state, plan)
    perceived = world.emission(final)
    seen = jax.jacfwd(lambda state: world.emission(state).mean)(final)
    _, (gains, noises) = jax.lax.scan(back, seen, steps, reverse=True)
    gain = jnp.moveaxis(gains, 1, 0).reshape(perceived.mean.size, -1)
    return LinearChannel(perceived.mean, gain, noises.sum(axis=0) + jnp.diag(perceived.scale**2))


def gaussian_empowerment(
    world: AbstractWorld, state: State, *, steps: int, power: Scalar | float = UNIFORM_POWER
) -> Scalar:
    r"""Estimate empowerment by the channel linearised around the centre of the actions.

    The capacity under a *power* constraint, by water-filling: not to be compared with the
    capacity under an *amplitude* constraint (`exact_empowerment`). Differentiable in the
    state. Exact for linear worlds; otherwise an approximation (Salge et al., 2013).

    Args:
        world: Any world.
        state: The state $z$.
        steps: The number of actions $n$.
        power: The mean square of each action in units of half the width of its bounds (of
            one, where unbounded); the total over a plan is `power * steps * action_size`.

    Returns:
        Empowerment in nats.
    """
    if steps < 1:
        raise ValueError(f"Expected steps to be at least 1; got {steps}.")
    if world.actions.choices:
        raise ValueError(
            "Expected continuous actions, to linearise the channel; they are discrete. Use the "
            "exact or the variational estimator."
        )
    return gaussian_empowerment_along(
        world, state, jnp.tile(world.actions.centre, (steps, 1)), power=power
    )


def gaussian_empowerment_along(
    world: AbstractWorld, state: State, plan: Plan, *, power: Scalar | float = UNIFORM_POWER
) -> Scalar:
    """Compute the capacity of the channel linearised around any plan, under the same power."""
    half_width = 0.5 * (world.actions.high - world.actions.low)
    half_width = jnp.where(jnp.isfinite(half_width), half_width, jnp.ones_like(half_width))
    channel = linearise(world, state, plan)
    gain = channel.gain * jnp.tile(half_width, len(plan))[None, :]
    total = jnp.asarray(power, gain.dtype) * plan.size
    return water_filling(gain, channel.noise, total)
