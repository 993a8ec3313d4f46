"""Worlds with continuous states as Gymnasium environments."""

from collections.abc import Mapping
from functools import cache, partial
from typing import Any, final

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt32
from numpy.typing import ArrayLike

from empowerment.environments import painters
from empowerment.environments.canvas import Frame
from empowerment.environments.validation import (
    LARGEST,
    check_render_mode,
    finite_array,
    start_state,
)
from empowerment.types import Observation, State
from empowerment.worlds import AbstractWorld, Box

Entropy = UInt32[Array | np.ndarray, "2"]
"""The bits of a key; building a key outside of the compiled step costs more than the step."""


@final
class WorldEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """A world as a Gymnasium environment.

    Empowerment needs neither rewards nor terminal states: the reward is always zero and
    `terminated` always false; `gymnasium.make` truncates episodes with a `TimeLimit`.

    Actions are physical (a torque, a force), not squashed, and clipped to their bounds.
    The observation is the mean of the world's emission, without its noise: the resolution
    is a property of the agent's perception, which matters when information is computed.

    Args:
        world: Any world.
        periodic: For each observed coordinate whether it is an angle, whose observation is
            wrapped to [-pi, pi]; the state is not wrapped. By default the angles of
            `world.states` where the state itself is observed, and none elsewhere.
        bounds: A box that observations never leave, with an axis for each observed
            coordinate. Unbounded by default: states may leave `world.states`, which is the
            region of interest.
        painter: Draws a state; as sliders by default.
        frames_per_second: The frame rate of videos.
        render_mode: `"rgb_array"`, or None for no rendering.

    Attributes:
        world: The world.
        periodic: For each observed coordinate whether it is an angle.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012 (Gymnasium's convention)

    action_space: gymnasium.spaces.Box
    observation_space: gymnasium.spaces.Box

    def __init__(
        self,
        world: AbstractWorld,
        *,
        periodic: tuple[bool, ...] | None = None,
        bounds: Box | None = None,
        painter: painters.Painter | None = None,
        frames_per_second: int = 20,
        render_mode: str | None = None,
    ):
        check_render_mode(render_mode, self.metadata["render_modes"])
        self.world = world
        self.render_mode = render_mode
        self.metadata = {**self.metadata, "render_fps": frames_per_second}
        self.action_space = _space(world.actions.low, world.actions.high)
        self.periodic = _periodic(world, periodic)
        leaves, structure = jax.tree.flatten(world)
        is_array = [isinstance(leaf, jax.Array | np.ndarray | np.generic) for leaf in leaves]
        pairs = list(zip(leaves, is_array, strict=True))
        self._arrays = [leaf if yes else None for leaf, yes in pairs]
        others = tuple(None if yes else leaf for leaf, yes in pairs)
        self._step = _compiled_step(structure, others, self.periodic)
        self.observation_space = _observation_space(bounds, self.periodic)
        self._painter = painter or _sliders(world.states)
        # The type that the world computes in; another one would trigger a compilation.
        self._dtype = world.states.low.dtype
        self._state: Array | None = None
        self._action: np.ndarray | None = None

    @property
    def state(self) -> Float[np.ndarray, " state"]:
        """The state of the world; angles are not wrapped."""
        return np.array(self._current())

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Float[np.ndarray, " observation"], dict[str, Any]]:
        """Start an episode from the world's initial distribution or from a given state.

        Args:
            seed: Random seed of the starts and the noise from here on.
            options: The `"state"` to start from, if given.

        Returns:
            The first observation, and an empty info.
        """
        super().reset(seed=seed)
        start = start_state(options)
        if start is None:
            state, observation = _start(self.world, self.periodic, self._entropy())
        else:
            shape = self.world.states.low.shape
            state = jnp.asarray(finite_array("the start state", start, shape, self._dtype))
            observation = _observe(self.world, self.periodic, state)
        shown = np.array(observation, np.float32)
        if shown not in self.observation_space:
            space = self.observation_space
            raise ValueError(
                f"Expected the start state to be observed within {space.low.tolist()} and "
                f"{space.high.tolist()}; got {state.tolist()}."
            )
        self._state, self._action = state, None
        return shown, {}

    def step(
        self, action: Any
    ) -> tuple[Float[np.ndarray, " observation"], float, bool, bool, dict[str, Any]]:
        """Apply an action for one step.

        Args:
            action: Finite, one number for each axis of the world's actions.

        Returns:
            Observation, reward, terminated, truncated and info.
        """
        state, space = self._current(), self.action_space
        checked = finite_array("the action", action, space.shape, self._dtype)
        clipped = np.clip(checked, space.low, space.high, dtype=self._dtype)
        self._state, observation = self._step(self._arrays, state, clipped, self._entropy())
        self._action = clipped
        return np.array(observation, np.float32), 0.0, False, False, {}

    def render(self) -> Frame | None:
        """Draw the state and the last action."""
        if self.render_mode is None:
            gymnasium.logger.warn("No render mode: make it with render_mode='rgb_array'.")
            return None
        return self._painter(self.state, self._action)

    def _current(self) -> Array:
        if self._state is None:
            raise gymnasium.error.ResetNeeded(
                "Expected the environment to be reset before it is used; call `reset`."
            )
        return self._state

    def _entropy(self) -> Entropy:
        """Sample the bits of a key: all randomness comes from Gymnasium's generator."""
        return self.np_random.integers(2**32, size=2, dtype=np.uint32)


def _wrap(periodic: tuple[bool, ...], observation: Observation) -> Float[Array, " observation"]:
    """Wrap angles to half a turn around zero; those already within are unchanged."""
    turns = jnp.round(observation / (2 * jnp.pi))
    wrapped = jnp.clip(observation - 2 * jnp.pi * turns, -jnp.pi, jnp.pi)
    return jnp.where(jnp.array(periodic), wrapped, observation)


# The world is an argument of all these, so that all environments of a type compile once.


@eqx.filter_jit
def _observe(world: AbstractWorld, periodic: tuple[bool, ...], state: State) -> Observation:
    return _wrap(periodic, world.emission(state).mean)


@eqx.filter_jit
def _start(
    world: AbstractWorld, periodic: tuple[bool, ...], entropy: Entropy
) -> tuple[State, Observation]:
    state = world.initial().sample(key=_key(entropy))
    return state, _wrap(periodic, world.emission(state).mean)


def follow(
    world: AbstractWorld,
    periodic: tuple[bool, ...],
    state: State,
    action: Float[Array | np.ndarray, " action"],
    entropy: Entropy,
) -> tuple[State, Observation]:
    """Sample the successor of a state, and observe it."""
    successor = world.transition(state, jnp.asarray(action)).sample(key=_key(entropy))
    return successor, _wrap(periodic, world.emission(successor).mean)


@cache
def _compiled_step(structure: Any, others: tuple[Any, ...], periodic: tuple[bool, ...]):
    """Compile `follow` for worlds of a structure, whose arrays are the first argument.

    Taking a world apart costs more than the step, so that is done once.
    """

    def step(arrays: list[Array | None], *inputs: Any) -> tuple[State, Observation]:
        pairs = zip(arrays, others, strict=True)
        leaves = [other if array is None else array for array, other in pairs]
        return follow(jax.tree.unflatten(structure, leaves), periodic, *inputs)

    return jax.jit(step)


def _key(entropy: Entropy) -> Array:
    """Build a key from its bits; the generator is fixed, so that seeds are reproducible."""
    return jax.random.wrap_key_data(jnp.asarray(entropy), impl="threefry2x32")


def _periodic(world: AbstractWorld, periodic: tuple[bool, ...] | None) -> tuple[bool, ...]:
    """Return a flag for each observed coordinate: whether it is an angle."""
    states = world.states
    probe = states.centre + 0.5  # other functions of the state may agree with it at zero
    observed = world.emission(probe).mean
    if periodic is None:
        is_state = observed.shape == probe.shape and bool((observed == probe).all())
        angles = tuple(name in states.angles for name in states.names)
        return angles if is_state else (False,) * observed.size
    if len(periodic) != observed.size:
        raise ValueError(
            f"Expected periodic to have a flag for each of {observed.size} observed coordinates; "
            f"got {periodic}."
        )
    return periodic


def _observation_space(bounds: Box | None, periodic: tuple[bool, ...]) -> gymnasium.spaces.Box:
    """Build the observation space: angles within half a turn, the rest within bounds."""
    if bounds is not None and bounds.size != len(periodic):
        raise ValueError(
            f"Expected bounds to have an axis for each of {len(periodic)} observed "
            f"coordinates; got {bounds.names}."
        )
    limits = (-LARGEST, LARGEST) if bounds is None else (bounds.low, bounds.high)
    low = np.where(periodic, -np.pi, np.clip(limits[0], -LARGEST, LARGEST))
    high = np.where(periodic, np.pi, np.clip(limits[1], -LARGEST, LARGEST))
    return _space(low, high)


def _space(low: ArrayLike, high: ArrayLike) -> gymnasium.spaces.Box:
    return gymnasium.spaces.Box(np.asarray(low, np.float32), np.asarray(high, np.float32))


def _sliders(states: Box) -> painters.Painter:
    """Build a painter for any world, with a slider for each coordinate of the state."""
    low, high = np.asarray(states.low), np.asarray(states.high)
    return partial(painters.sliders, low=low, high=high)
