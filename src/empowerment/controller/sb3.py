"""Prediction with explicit state for many environments, as in Stable-Baselines3."""

from typing import Any

import numpy as np

from empowerment.controller.bundle import Bundle
from empowerment.controller.numpy_engine import NumpyEngine
from empowerment.controller.reference import reference_step

_BEYOND = 1e9
"""Factor of noise that no score of a choice is noticed in."""


def read_numbers(observation: Any, size: int) -> np.ndarray:
    """Convert untrusted input to an array of numbers; masked values become NaN.

    Args:
        observation: Any object.
        size: Size of an observation, for the error message.

    Returns:
        The numbers in double precision, of any shape.

    Raises:
        ValueError: If the input is not numeric.
    """
    try:
        if isinstance(observation, np.ma.MaskedArray):
            observation = np.ma.filled(observation.astype(float), np.nan)
        array = np.asarray(observation)
        if array.dtype.kind in "fiub":
            with np.errstate(all="ignore"):
                return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(
        f"Expected the observation to be an array of {size} numbers; got "
        f"{type(observation).__name__}."
    )


class Predictor:
    """Callable with the semantics of Stable-Baselines3's `predict`.

    Args:
        bundle: The controller bundle.
    """

    def __init__(self, bundle: Bundle):
        self._bundle = bundle
        self._engine = NumpyEngine(bundle)
        self._random = np.random.default_rng(0)

    def __call__(
        self,
        observation: Any,
        state: tuple[np.ndarray, ...] | None,
        episode_start: Any,
        *,
        deterministic: bool,
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """Return the actions and the state for the next call; see `Controller.predict`."""
        about = self._bundle.description
        shape = (about.observation_size,)
        values = read_numbers(observation, about.observation_size)
        rows = np.atleast_2d(values)
        if values.ndim not in (1, 2) or rows.shape[1:] != shape:
            raise ValueError(
                f"Expected observations to be of shape {shape}, or rows of that shape; got "
                f"{values.shape}."
            )
        memory = np.zeros((len(rows), about.memory_size), np.float32)
        if state is not None:
            if len(state) != 1 or np.shape(state[0]) != memory.shape:
                raise ValueError(
                    f"Expected the state to be what `predict` gave, of shape {memory.shape}; got "
                    f"{[np.shape(part) for part in state]}."
                )
            memory[...] = state[0]
        if episode_start is not None:
            memory[np.broadcast_to(np.asarray(episode_start, bool), len(rows))] = 0.0
        actions = np.empty((len(rows), about.action_size), np.float32)
        with np.errstate(all="ignore"):
            rows = rows.astype(np.float32)
            for row, each, action in zip(rows, memory, actions, strict=True):
                if deterministic:
                    action[:], each[:] = self._mean(row, each)
                else:
                    action[:], each[:] = self._sample(row, each)
        if about.choices:
            actions = actions.astype(np.int64)
            if about.action_size == 1:
                actions = actions[:, 0]
        return (actions[0, ...] if values.ndim == 1 else actions), (memory,)

    def _mean(self, row: np.ndarray, memory: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        engine = self._engine
        engine.load(memory)
        engine.observation = row
        engine.run(seen=bool(np.isfinite(row).all()))
        return engine.action, engine.memory

    def _sample(self, row: np.ndarray, memory: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        about = self._bundle.description
        draw = self._random.gumbel if about.choices else self._random.normal
        noise = draw(size=about.encoded_size)
        if about.choices:
            # Noise beyond all scores makes a choice of pure chance.
            is_chance = self._random.random(about.action_size) < about.uniform_share
            noise *= np.repeat(np.where(is_chance, _BEYOND, 1.0), about.choices)
        action, after = reference_step(self._bundle, row, memory, noise)
        action = np.clip(action, *self._bundle.limits)
        if np.isfinite(action).all() and np.isfinite(after).all():
            return action, after
        return self._mean(row, memory)  # Overflow: fall back to the engine, which handles it.
