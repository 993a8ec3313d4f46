"""Gradient descent for everything that is trained: clipped Adam, schedules, snapshots, one loop."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from empowerment.errors import DivergedError
from empowerment.types import Key, Scalar

Loss = Callable[[Any, Any, Any, Any], tuple[Scalar, Any]]
"""Maps model, target network, inputs of the update and a key to the loss and auxiliary values."""

Diagnose = Callable[[Any, Any], Any]
"""Maps auxiliary values and the gradient before clipping to the diagnostics of an update."""


class TrainingState(eqx.Module):
    """State carried from update to update.

    Attributes:
        model: What is trained.
        optimiser: State of the optimiser.
        num_updates: Number of updates made.
        key: Source of randomness of the updates to come.
        target: What follows the model, such as a target network; none by default.
    """

    model: Any
    optimiser: optax.OptState
    num_updates: Int[Array, ""]
    key: Key
    target: Any = None


@dataclass(frozen=True)
class Snapshot:
    """Checkpoint of a training run; resuming from it is bit-exact.

    Attributes:
        state: State after the latest update; `state.model` is what is trained.
        history: After each call: number of updates, and diagnostics.
        total: Number of updates after which training will stop, as far as known.
        stopped: Why training stopped; empty while it goes on.
        best: Best model so far by validation, where there is early stopping.
    """

    state: Any
    history: list[tuple[int, dict[str, float]]]
    total: int
    stopped: str = ""
    best: Any = None

    @property
    def model(self) -> Any:
        """The trained model: the best by validation if there is early stopping, else the latest."""
        return self.state.model if self.best is None else self.best


@dataclass(frozen=True)
class Callback:
    """Observer of a training run.

    Attributes:
        on_update: Called after each compiled call of many updates.
        resume: Maps the fresh snapshot to the one to start from; all other arguments of the
            training must be as they were when it was taken.
    """

    on_update: Callable[[Snapshot], None] = lambda snapshot: None
    resume: Callable[[Snapshot], Snapshot] = lambda fresh: fresh


SILENT = Callback()
"""The callback that does nothing."""


def clipped_adam(max_norm: float) -> optax.GradientTransformation:
    """Build Adam's direction with gradient clipping; the learning rate is traced, not built in."""
    return optax.chain(optax.clip_by_global_norm(max_norm), optax.scale_by_adam())


def half_cosine(
    learning_rate: float, progress: Float[Array, " updates"]
) -> Float[Array, " updates"]:
    """Compute learning rates: constant in the first half of training, then a cosine to zero."""
    return learning_rate * 0.5 * (1 + jnp.cos(jnp.pi * jnp.clip(2 * progress - 1, 0, 1)))


def full_cosine(learning_rate: float, num_updates: int) -> Float[Array, " updates"]:
    """Compute learning rates that decay to zero by a cosine over all updates."""
    with jax.numpy_dtype_promotion("standard"):
        schedule = optax.cosine_decay_schedule(learning_rate, num_updates)
        return jnp.asarray(schedule(jnp.arange(num_updates)))


def init(
    model: Any,
    optimiser: optax.GradientTransformation,
    *,
    trainable: Any = eqx.is_inexact_array,
    target: Any = None,
    key: Key,
) -> TrainingState:
    """Build the state before the first update."""
    memory = eqx.filter_jit(optimiser.init)(eqx.filter(model, trainable))
    return TrainingState(model, memory, jnp.array(0), key, target)


def updates(
    loss: Loss,
    state: TrainingState,
    inputs: Any,
    *,
    learning_rates: Float[Array, " updates"],
    **options: Any,
) -> tuple[TrainingState, Any]:
    """Scan over many updates of a training state; call it under one `jit`.

    Args:
        loss: The loss of one update.
        state: Where training stands.
        inputs: Scanned inputs of the loss, one row for each update.
        learning_rates: One for each update.
        **options: As given to `descend`.

    Returns:
        The state afterwards, and the mean of the diagnostics.
    """
    key, batch_key = jax.random.split(state.key)
    keys = jax.random.split(batch_key, learning_rates.size)
    carry = state.model, state.optimiser, state.target
    (model, memory, target), diagnostics = descend(
        loss, carry, (inputs, learning_rates, keys), **options
    )
    num_updates = state.num_updates + learning_rates.size
    after = TrainingState(model, memory, num_updates, key, target)
    return after, jax.tree.map(jnp.mean, diagnostics)


def descend(
    loss: Loss,
    carry: tuple[Any, optax.OptState, Any],
    scanned: tuple[Any, Float[Array, " updates"], Any],
    *,
    optimiser: optax.GradientTransformation,
    diagnose: Diagnose = lambda auxiliary, gradient: None,
    trainable: Any = eqx.is_inexact_array,
    micro_batches: int | None = None,
    track: Callable[[Any, Any, Any], Any] = lambda target, model, auxiliary: target,
) -> tuple[tuple[Any, optax.OptState, Any], Any]:
    """Scan over updates.

    Args:
        loss: The loss of one update.
        carry: Model, state of the optimiser, target network.
        scanned: Inputs of the loss, learning rates and keys, one row for each update.
        optimiser: As given to `init`.
        diagnose: Computes the diagnostics of an update.
        trainable: As given to `init`.
        micro_batches: Number of evaluations of the loss whose gradients are averaged, each with
            a key of its own; by default one, with the key of the update.
        track: Moves the target, given the parameters after the update and the auxiliary values.

    Returns:
        The carry afterwards, and the diagnostics of each update.
    """
    model, memory, target = carry
    parameters, rest = eqx.partition(model, trainable)
    moving, fixed = eqx.partition(target, eqx.is_inexact_array)

    def gradient_of(parameters: Any, target: Any, inputs: Any, key: Key | None) -> tuple[Any, Any]:
        def of_parameters(parameters: Any, key: Key | None) -> tuple[Scalar, Any]:
            return loss(eqx.combine(parameters, rest), target, inputs, key)

        gradient = jax.grad(of_parameters, has_aux=True)
        if micro_batches is None or key is None:
            return gradient(parameters, key)

        def add(total: Any, key: Key) -> tuple[Any, None]:
            return jax.tree.map(jnp.add, total, gradient(parameters, key)), None

        first, *others = jax.random.split(key, micro_batches)
        total = gradient(parameters, first)
        if others:
            total, _ = jax.lax.scan(add, total, jnp.stack(others))
        return jax.tree.map(lambda leaf: leaf / micro_batches, total)

    def update(carry: Any, scanned: Any) -> tuple[Any, Any]:
        parameters, memory, moving = carry
        inputs, learning_rate, key = scanned
        gradient, auxiliary = gradient_of(parameters, eqx.combine(moving, fixed), inputs, key)
        with jax.numpy_dtype_promotion("standard"):  # Adam counts in integers.
            changes, memory = optimiser.update(gradient, memory)
        changes = jax.tree.map(lambda change: -learning_rate * change, changes)
        parameters = eqx.apply_updates(parameters, changes)
        moving = track(moving, parameters, auxiliary)
        return (parameters, memory, moving), diagnose(auxiliary, gradient)

    (parameters, memory, moving), diagnostics = jax.lax.scan(
        update, (parameters, memory, moving), scanned
    )
    after = eqx.combine(parameters, rest), memory, eqx.combine(moving, fixed)
    return after, diagnostics


def train(advance: Callable[[Snapshot], Snapshot], fresh: Snapshot, callback: Callback) -> Snapshot:
    """Advance until training has stopped, and check that every diagnostic is finite.

    Args:
        advance: Makes the updates of one call, and decides whether training stops.
        fresh: The snapshot before the first update.
        callback: Observer; it may resume from another snapshot.

    Raises:
        DivergedError: If a diagnostic is not finite.
    """
    at = callback.resume(fresh)
    while not at.stopped:
        before, at = at, advance(at)
        count, diagnostics = at.history[-1]
        if not all(map(math.isfinite, diagnostics.values())):
            last = before.history[-1] if before.history else (0, {})
            raise DivergedError(
                f"Expected training to stay finite; got {diagnostics} by update {count}. The last "
                f"finite diagnostics were {last[1]} at update {last[0]}. Try a lower learning rate."
            )
        callback.on_update(at)
    return at


def to_floats(diagnostics: Any) -> dict[str, float]:
    """Return the fields of a record of scalars as plain numbers."""
    return {name: float(value) for name, value in vars(diagnostics).items()}
