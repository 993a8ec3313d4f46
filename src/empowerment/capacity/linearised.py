"""Empowerment of the linearised Gaussian channel: closed form, for any world."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from empowerment.capacity.water_filling import water_filling
from empowerment.types import Action, Plan, Scalar, State
from empowerment.worlds import AbstractWorld

UNIFORM_POWER = 1 / 3
"""The power of an action that is uniform between limits of minus one and one."""


class LinearChannel(eqx.Module):
    r"""A channel from plans to perceived futures, linear around one plan.

    $$x' \approx \bar x + G\,(\mathrm{plan} - \overline{\mathrm{plan}}) + \varepsilon,
    \qquad \varepsilon \sim \mathcal{N}(0, N)$$

    Attributes:
        mean: $\bar x$, what is perceived after the plan itself.
        gain: $G$, with all actions of all steps side by side.
        noise: $N$, process noise carried to the end plus the noise of the emission.
    """

    mean: Float[Array, " observation"]
    gain: Float[Array, "observation inputs"]
    noise: Float[Array, "observation observation"]


def linearise(world: AbstractWorld, state: State, plan: Plan) -> LinearChannel:
    """Linearise a world along a plan, by automatic differentiation.

    Args:
        world: Any world.
        state: Where the plan starts.
        plan: The plan around which to linearise.

    Returns:
        The linear channel.
    """

    def perceived(
        plan: Plan, innovations: Float[Array, "steps state"]
    ) -> Float[Array, " observation"]:
        def step(state: State, inputs: tuple[Action, State]) -> tuple[State, None]:
            action, innovation = inputs
            successor = world.transition(state, action)
            return successor.mean + successor.scale * innovation, None

        return world.emission(jax.lax.scan(step, state, (plan, innovations))[0]).mean

    quiet = jnp.zeros((plan.shape[0], state.shape[0]), state.dtype)
    mean = perceived(plan, quiet)
    # The scale of the emission is taken at the state that the plan itself leads to.
    final = jax.lax.scan(
        lambda state, action: (world.transition(state, action).mean, None), state, plan
    )[0]
    to_plan, to_noise = jax.jacfwd(perceived, argnums=(0, 1))(plan, quiet)
    gain = to_plan.reshape(mean.size, -1)
    spread = to_noise.reshape(mean.size, -1)
    noise = spread @ spread.T + jnp.diag(world.emission(final).scale ** 2)
    return LinearChannel(mean, gain, noise)


def gaussian_empowerment(
    world: AbstractWorld, state: State, *, steps: int, power: Scalar | float = UNIFORM_POWER
) -> Scalar:
    r"""Estimate empowerment by the linearised channel around the middle of the actions.

    The capacity under a limit on *power*, by water-filling: not to be compared with the
    capacity under a limit on *amplitude* (`exact_empowerment`). Differentiable in the
    state. Exact for linear worlds; otherwise an approximation (Salge et al., 2013).

    Args:
        world: Any world.
        state: The state $z$.
        steps: The number of actions $n$.
        power: The power of each action in units of half the width of its limits,
            (of one, where there is no limit), squared; the total over a plan is
            `power * steps * action_size`.

    Returns:
        Empowerment in nats.
    """
    if steps < 1:
        raise ValueError(f"Expected steps to be at least 1; got {steps}.")
    half_width = 0.5 * (world.actions.high - world.actions.low)
    half_width = jnp.where(jnp.isfinite(half_width), half_width, jnp.ones_like(half_width))
    plan = jnp.tile(world.actions.centre, (steps, 1))
    channel = linearise(world, state, plan)
    gain = channel.gain * jnp.tile(half_width, steps)[None, :]
    total = jnp.asarray(power, gain.dtype) * plan.size
    return water_filling(gain, channel.noise, total)
