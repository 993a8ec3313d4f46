"""Worlds with continuous states as Gymnasium environments."""

from collections.abc import Mapping
from functools import partial
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
from empowerment.environments.validation import check_render_mode, finite_array, given_start
from empowerment.types import Observation, State
from empowerment.worlds import AbstractWorld, Box

Entropy = UInt32[Array | np.ndarray, "2"]
"""The bits of a key; a key itself costs more to make than a whole step."""

LARGEST = float(np.finfo(np.float32).max)
"""Stands for no limit: Gymnasium's checker warns of infinite observation spaces."""


@final
class WorldEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """A world as a Gymnasium environment: act, and see what becomes of it.

    There is no reward and no end: empowerment is a goal that needs neither. The reward
    is always zero, `terminated` always false; `gymnasium.make` cuts episodes with a
    `TimeLimit`.

    Actions are physical (a torque, a force), not squashed; those beyond the limits are
    clipped to them. The observation is the mean of the world's emission, without its
    noise: the resolution is what the agent can tell apart, a property of its perception
    that counts when information is counted. The environment itself shows the state.

    Args:
        world: Any world, also your own.
        periodic: For each observed coordinate whether it is an angle: it is shown
            wrapped to [-pi, pi]. The state is not wrapped. None are by default.
        bounds: What observations never leave, a box with an axis for each observed
            coordinate. By default there is no limit: `world.states` is only where
            states are looked at, and they may leave it.
        painter: Draws a state; sliders by default.
        frames_per_second: How fast to play the frames.
        render_mode: `"rgb_array"`, or None for no pictures.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012 (Gymnasium's own way)

    action_space: gymnasium.spaces.Box
    observation_space: gymnasium.spaces.Box

    def __init__(
        self,
        world: AbstractWorld,
        *,
        periodic: tuple[bool, ...] = (),
        bounds: Box | None = None,
        painter: painters.Painter | None = None,
        frames_per_second: int = 20,
        render_mode: str | None = None,
    ):
        check_render_mode(render_mode, self.metadata["render_modes"])
        size = world.emission(world.states.centre).mean.shape[0]
        self.world = world
        self.render_mode = render_mode
        self.metadata = {**self.metadata, "render_fps": frames_per_second}
        self.action_space = _space(world.actions.low, world.actions.high)
        self._periodic = _checked_periodic(periodic, size)
        self.observation_space = _observation_space(bounds, self._periodic)
        self._painter = painter or _sliders(world.states)
        # The world computes in this type; anything else would be compiled for anew.
        self._dtype = world.states.low.dtype
        self._state: Array | None = None
        self._action: np.ndarray | None = None

    @property
    def state(self) -> Float[np.ndarray, " state"]:
        """The state as the world has it: angles are not wrapped."""
        return np.array(self._current())

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Float[np.ndarray, " observation"], dict[str, Any]]:
        """Start anew, from the world's initial distribution or from a given state.

        Args:
            seed: For the noise of the world from here on.
            options: May have a `"state"` to start from.

        Returns:
            The first observation, and no further information.
        """
        super().reset(seed=seed)
        given = given_start(options)
        if given is None:
            state, observation = _start(self.world, self._periodic, self._entropy())
        else:
            shape = self.world.states.low.shape
            state = jnp.asarray(finite_array("the start state", given, shape, self._dtype))
            observation = _observe(self.world, self._periodic, state)
        shown = np.array(observation, np.float32)
        if shown not in self.observation_space:
            space = self.observation_space
            raise ValueError(
                f"Expected the start state to be seen within {space.low.tolist()} and "
                f"{space.high.tolist()}; got {state.tolist()}."
            )
        self._state, self._action = state, None
        return shown, {}

    def step(
        self, action: Any
    ) -> tuple[Float[np.ndarray, " observation"], float, bool, bool, dict[str, Any]]:
        """Act for one step; the reward is zero and nothing ever ends.

        Args:
            action: Finite, one number for each axis of the world's actions.

        Returns:
            Gymnasium's five: observation, reward, terminated, truncated, information.
        """
        state, space = self._current(), self.action_space
        given = finite_array("the action", action, space.shape, self._dtype)
        allowed = np.clip(given, space.low, space.high, dtype=self._dtype)
        self._state, observation = _step(
            self.world, self._periodic, state, allowed, self._entropy()
        )
        self._action = allowed
        return np.array(observation, np.float32), 0.0, False, False, {}

    def render(self) -> Frame | None:
        """Draw the state and the last action."""
        if self.render_mode is None:
            gymnasium.logger.warn("No render mode: make it with render_mode='rgb_array'.")
            return None
        return self._painter(self.state, self._action)

    def _current(self) -> Array:
        """Give the state, if there is one."""
        if self._state is None:
            raise gymnasium.error.ResetNeeded(
                "Expected the environment to be reset before it is used; call `reset`."
            )
        return self._state

    def _entropy(self) -> Entropy:
        """Draw the bits of a key: all randomness comes from Gymnasium's generator."""
        return self.np_random.integers(2**32, size=2, dtype=np.uint32)


def _wrap(periodic: tuple[bool, ...], observation: Observation) -> Float[Array, " observation"]:
    """Show angles within half a turn of zero, exactly as they are where they are there."""
    turns = jnp.round(observation / (2 * jnp.pi))
    wrapped = jnp.clip(observation - 2 * jnp.pi * turns, -jnp.pi, jnp.pi)
    return jnp.where(jnp.array(periodic), wrapped, observation)


# The world is an argument of these, so that all environments of a kind compile once.


@eqx.filter_jit
def _observe(world: AbstractWorld, periodic: tuple[bool, ...], state: State) -> Observation:
    return _wrap(periodic, world.emission(state).mean)


@eqx.filter_jit
def _start(
    world: AbstractWorld, periodic: tuple[bool, ...], entropy: Entropy
) -> tuple[State, Observation]:
    state = world.initial().sample(key=_key(entropy))
    return state, _wrap(periodic, world.emission(state).mean)


@eqx.filter_jit
def _step(
    world: AbstractWorld,
    periodic: tuple[bool, ...],
    state: State,
    action: Float[Array | np.ndarray, " action"],
    entropy: Entropy,
) -> tuple[State, Observation]:
    successor = world.transition(state, jnp.asarray(action)).sample(key=_key(entropy))
    return successor, _wrap(periodic, world.emission(successor).mean)


def _key(entropy: Entropy) -> Array:
    """Make a key of its bits; the generator is named, so that seeds mean the same."""
    return jax.random.wrap_key_data(jnp.asarray(entropy), impl="threefry2x32")


def _checked_periodic(periodic: tuple[bool, ...], size: int) -> tuple[bool, ...]:
    """Give a flag for each observed coordinate."""
    if periodic and len(periodic) != size:
        raise ValueError(
            f"Expected periodic to have a flag for each of {size} observed coordinates; "
            f"got {periodic}."
        )
    return periodic or (False,) * size


def _observation_space(bounds: Box | None, periodic: tuple[bool, ...]) -> gymnasium.spaces.Box:
    """Give the space of observations: angles within half a turn, the rest in bounds."""
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
    """Make a Gymnasium space of single precision."""
    return gymnasium.spaces.Box(np.asarray(low, np.float32), np.asarray(high, np.float32))


def _sliders(states: Box) -> painters.Painter:
    """Give a painter for any world: a slider for each coordinate of the state."""
    low, high = np.asarray(states.low), np.asarray(states.high)
    return partial(painters.gauges, low=low, high=high)
