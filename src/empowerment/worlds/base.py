r"""Base classes of worlds: $\rho(z_1)$, $p(z'|z,u)$, $p(x|z)$ and bounds on states and actions."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from empowerment.distributions import AbstractDistribution, Gaussian, Uniform
from empowerment.types import Action, State

if TYPE_CHECKING:
    # Type checkers take equinox's AbstractVar for a field and require it as an argument
    # of every world, even where it is a property.
    from typing import ClassVar as AbstractVar
else:
    from equinox import AbstractVar


def as_array(value: Array | np.ndarray | Sequence[float | int] | float | int) -> Array:
    """Convert to a strongly typed array of the default float type."""
    return jnp.asarray(value, dtype=float)


class Box(eqx.Module):
    """A box with named axes: bounds of states or actions.

    Args:
        low: The lower corner; minus infinity where unbounded.
        high: The upper corner; infinity where unbounded.
        names: The name of each axis.
        angles: The names of the periodic axes, angles in radians.
        choices: Of discrete actions, which are one-hot vectors one after the other, the size of
            each; empty if every point of the box is admissible.
    """

    low: Float[Array, " size"] = eqx.field(converter=as_array)
    high: Float[Array, " size"] = eqx.field(converter=as_array)
    names: tuple[str, ...] = eqx.field(static=True)
    angles: tuple[str, ...] = eqx.field(static=True, default=())
    choices: tuple[int, ...] = eqx.field(static=True, default=())

    def __check_init__(self):
        """Check that there are axes, that shapes match and that low is below high."""
        if not self.names:
            raise ValueError("Expected a box to have at least one axis; got none.")
        if not self.low.shape == self.high.shape == (len(self.names),):
            raise ValueError(
                f"Expected low and high to have one entry for each of {self.names}; "
                f"got shapes {self.low.shape} and {self.high.shape}."
            )
        if not set(self.angles) <= set(self.names):
            raise ValueError(
                f"Expected the angles to be among the axes {self.names}; got {self.angles}."
            )
        if self.choices and (sum(self.choices) != self.size or min(self.choices) < 2):
            raise ValueError(
                f"Expected the choices to be two or more each, and as many as the {self.size} axes "
                f"in all; got {self.choices}."
            )
        if not _is_traced(self) and not np.all(np.asarray(self.low) < np.asarray(self.high)):
            raise ValueError(
                f"Expected low to be below high on each of {self.names}; "
                f"got {self.low.tolist()} and {self.high.tolist()}."
            )

    @property
    def size(self) -> int:
        """The number of axes."""
        return len(self.names)

    @property
    def finite(self) -> bool:
        """Whether all bounds are finite."""
        return bool(np.isfinite([self.low, self.high]).all())

    @property
    def centre(self) -> Float[Array, " size"]:
        """The midpoint; on an unbounded axis, the admissible value closest to zero."""
        middle = 0.5 * (self.low + self.high)
        nearest = jnp.clip(jnp.zeros_like(middle), self.low, self.high)
        return jnp.where(jnp.isfinite(middle), middle, nearest)

    @property
    def feature_size(self) -> int:
        """The number of features of a point."""
        return self.size + len(self.angles)

    def features(self, place: Float[Array, " size"]) -> Float[Array, " features"]:
        """Compute network inputs of order one; an angle becomes its cosine and sine."""
        centre, half_width = jax.lax.stop_gradient((self.centre, 0.5 * (self.high - self.low)))
        scaled = 2 * (place - centre) / half_width
        parts = []
        for axis, name in enumerate(self.names):
            if name in self.angles:
                parts += [jnp.cos(place[axis]), jnp.sin(place[axis])]
            else:
                parts.append(scaled[axis])
        return jnp.stack(parts)

    def uniform(self) -> Uniform:
        """Return the uniform distribution over the box."""
        return Uniform(self.low, self.high)

    @property
    def num_choices(self) -> int:
        """The number of admissible points; 0 if they are not discrete."""
        return math.prod(self.choices) if self.choices else 0

    def split(self, place: Float[Array, "*batch size"]) -> list[Float[Array, "*batch _"]]:
        """Split into the parts that belong to each choice."""
        return jnp.split(place, np.cumsum(self.choices)[:-1], axis=-1)

    def choose(self, scores: Float[Array, " size"]) -> Float[Array, " size"]:
        """Return the one-hot vectors of the largest score of each choice."""
        parts = [jax.nn.one_hot(jnp.argmax(part), part.size) for part in self.split(scores)]
        return jnp.concatenate(parts).astype(scores.dtype)

    def all_choices(self) -> Float[Array, "choices size"]:
        """Return all admissible points of a discrete box."""
        indices = np.indices(self.choices).reshape(len(self.choices), -1)
        parts = [np.eye(count)[at] for count, at in zip(self.choices, indices, strict=True)]
        return as_array(np.concatenate(parts, axis=1))


def discrete(*choices: int, names: Sequence[str] = ()) -> Box:
    """Build the box of discrete actions: one-hot vectors, one after the other.

    Args:
        *choices: The number of choices of each action.
        names: A name for each choice of each action; numbers by default.
    """
    numbered = (f"{axis + 1}={at}" for axis, count in enumerate(choices) for at in range(count))
    zeros = jnp.zeros(sum(choices))
    return Box(zeros, zeros + 1, tuple(names) or tuple(numbered), choices=choices)


class AbstractWorld(eqx.Module):
    r"""A controllable system with continuous states, differentiable and unbatched.

    Karl et al. (2018), Eq. 1 (eq:joint_dynamics): $z_1 \sim \rho$, $z_{t+1} \sim
    p(z_{t+1}|z_t, u_t)$; the perceived observation of a state is $x \sim p(x|z)$.

    Deviation: the paper states no noise. A channel without noise carries infinitely
    much information, so a world without noise is refused at construction.
    """

    states: AbstractVar[Box]
    """The region of interest, the axes of a landscape. States may leave it."""

    actions: AbstractVar[Box]
    """The admissible actions."""

    @abstractmethod
    def initial(self) -> AbstractDistribution:
        r"""Return the distribution of the initial state, $\rho(z_1)$."""

    def state_distribution(self) -> AbstractDistribution:
        """Return the distribution of states on which channels are trained."""
        return self.states.uniform()

    @abstractmethod
    def transition(self, state: State, action: Action) -> Gaussian:
        r"""Return the distribution of the successor, $p(z'|z,u)$."""

    @abstractmethod
    def emission(self, state: State) -> Gaussian:
        r"""Return the distribution of the observation of a state, $p(x|z)$."""

    def __check_init__(self):
        """Check shapes, finiteness and noise of the two distributions."""
        if _is_traced(self):
            return
        state, transition, emission = probe(self, self.states, self.actions)
        for name, given in (("transition", transition), ("emission", emission)):
            parts = (getattr(given, "mean", None), getattr(given, "scale", None))
            shapes = [getattr(part, "shape", None) for part in parts]
            if not isinstance(given, Gaussian) or shapes[0] != shapes[1]:
                raise ValueError(
                    f"Expected the {name} of {type(self).__name__} to be a Gaussian with a scale "
                    f"for each mean; got {type(given).__name__} with shapes {shapes}."
                )
        if transition.mean.shape != state.shape:
            raise ValueError(
                f"Expected the successor of a state of shape {state.shape} to have the "
                f"same shape; got {transition.mean.shape} from {type(self).__name__}."
            )
        for name, given in (("transition", transition), ("emission", emission)):
            mean, scale = np.asarray(given.mean), np.asarray(given.scale)
            if not np.all(np.isfinite(mean) & np.isfinite(scale) & (scale >= 0)):
                raise ValueError(
                    f"Expected the {name} of {type(self).__name__} to be finite with "
                    f"scales of at least zero; got mean {given.mean.tolist()} and scale "
                    f"{given.scale.tolist()} at state {state.tolist()}."
                )
        scales = np.asarray(emission.scale), np.asarray(transition.scale)
        if not any(np.all(scale > 0) for scale in scales):
            raise ValueError(
                f"Expected {type(self).__name__} to have positive noise; got a "
                f"transition of scale {transition.scale.tolist()} and an emission of "
                f"scale {emission.scale.tolist()}. Without noise every action can be "
                "inferred exactly and empowerment is infinite: set a resolution above zero."
            )


@eqx.filter_jit
def probe(world: AbstractWorld, states: Box, actions: Box) -> tuple[State, Any, Any]:
    """Return the centre of the states, and transition and emission there, by one program."""
    state = states.centre
    return state, world.transition(state, actions.centre), world.emission(state)


def _is_traced(module: eqx.Module) -> bool:
    """Whether a module is built inside a JAX transformation, where values are unknown."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(module))


class Bounded(AbstractWorld):
    r"""A world whose actions live before the squash: unbounded real numbers.

    The action $a$ acts as $u = c + w \tanh a$, with $c$ the centre and $w$ half the
    width of the admissible actions (Karl et al. (2018), App. A.2.1). Where actions are discrete,
    its numbers are scores, and the choice with the largest score acts.

    Args:
        world: A world with finite action bounds.
    """

    world: AbstractWorld
    states: Box
    actions: Box

    def __init__(self, world: AbstractWorld):
        if not world.actions.finite:
            raise ValueError(
                "Expected the limits of the actions to be finite, to squash into; "
                f"got {world.actions.low.tolist()} to {world.actions.high.tolist()}."
            )
        self.world = world
        self.states = world.states
        unbounded = jnp.full_like(world.actions.low, jnp.inf)
        self.actions = Box(
            -unbounded, unbounded, world.actions.names, choices=world.actions.choices
        )

    def squash(self, action: Action) -> Action:
        """Map an unbounded action to an admissible one."""
        allowed = self.world.actions
        if allowed.choices:
            return allowed.choose(action)
        return allowed.centre + 0.5 * (allowed.high - allowed.low) * jnp.tanh(action)

    def initial(self) -> AbstractDistribution:
        """Return the initial distribution of the wrapped world."""
        return self.world.initial()

    def state_distribution(self) -> AbstractDistribution:
        """Return the state distribution of the wrapped world."""
        return self.world.state_distribution()

    def transition(self, state: State, action: Action) -> Gaussian:
        """Return the distribution of the successor under the squashed action."""
        return self.world.transition(state, self.squash(action))

    def emission(self, state: State) -> Gaussian:
        """Return the emission of the wrapped world."""
        return self.world.emission(state)
