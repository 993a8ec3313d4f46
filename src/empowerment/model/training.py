"""Training a model: ascend the evidence lower bound over windows of data."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from empowerment import optimise
from empowerment.devices import shard
from empowerment.model.dvbf import DVBF
from empowerment.model.elbo import Elbo, elbo
from empowerment.optimise import SILENT, Callback, Snapshot, TrainingState
from empowerment.types import Key, Scalar

_CLIP = 10.0
"""Maximal norm of a gradient."""

_FIRST_WEIGHT = 0.01
"""Initial weight of the divergence."""

_WARM_UP = 0.3
"""Fraction of all updates in which the weight of the divergence rises to one."""

_PREDICTION = 0.2
"""Weight of open-loop predictions in the loss."""

_NUM_PROBES = 256
"""Windows of the validation data at which the model is evaluated."""

_PATIENCE = 0.2
"""Early-stopping patience as a fraction of the budget, counted from the start of learning-rate
decay; before that, validation scores are too noisy."""


class Sequences(eqx.Module):
    """Windows of scaled data.

    Attributes:
        observations: Rows of all episodes, one episode after the other.
        actions: Action taken at each row.
        starts: First row of each window.
        length: Number of rows in a window.
        weights: Weight of each row; none where all count alike.
    """

    observations: Float[Array, "rows observation"]
    actions: Float[Array, "rows action"]
    starts: Int[Array, " windows"]
    length: int = eqx.field(static=True)
    weights: Float[Array, " rows"] | None = None

    @eqx.filter_jit
    def take(
        self, chosen: Int[Array, " chosen"]
    ) -> tuple[Float[Array, "chosen times observation"], Float[Array, "chosen steps action"]]:
        """Return observations and actions of some windows."""
        rows = self._rows(chosen)
        return self.observations[rows], self.actions[rows[:, :-1]]

    def take_weights(self, chosen: Int[Array, " chosen"]) -> Float[Array, "chosen times"] | None:
        """Return the weights of the rows of some windows; none where all count alike."""
        return None if self.weights is None else self.weights[self._rows(chosen)]

    def _rows(self, chosen: Int[Array, " chosen"]) -> Int[Array, "chosen times"]:
        return self.starts[chosen][:, None] + jnp.arange(self.length)[None, :]


class Info(eqx.Module):
    """Diagnostics: means over the updates of a call, in nats per row.

    Attributes:
        elbo: Evidence lower bound.
        reconstruction: Its first part.
        divergence: Its second part.
        prediction: Log-density of the observations after the filter was switched off.
        gradient_norm: Norm of the gradient before clipping.
    """

    elbo: Scalar
    reconstruction: Scalar
    divergence: Scalar
    prediction: Scalar
    gradient_norm: Scalar


def init(model: DVBF, *, key: Key) -> TrainingState:
    """Build the state before the first update of an untrained model, or one to fine-tune."""
    optimiser = optimise.clipped_adam(_CLIP)
    return optimise.init(model, optimiser, trainable=_trainable(model), key=key)


@eqx.filter_jit
def step(
    state: TrainingState,
    sequences: Sequences,
    *,
    weights: Float[Array, " updates"],
    learning_rates: Float[Array, " updates"],
    batch_size: int,
) -> tuple[TrainingState, Info]:
    """Make many updates in one compiled call.

    Returns:
        The state afterwards, and diagnostics.
    """
    length = sequences.length

    def loss(model: DVBF, target: None, weight: Scalar, key: Key) -> tuple[Scalar, Elbo]:
        choice_key, elbo_key = jax.random.split(key)
        chosen = jax.random.randint(choice_key, (batch_size,), 0, sequences.starts.size)
        weights = shard(sequences.take_weights(chosen))
        windows = shard(sequences.take(chosen))
        terms = elbo(model, *windows, weights=weights, key=elbo_key)
        gain = terms.value + (1 - weight) * terms.divergence + _PREDICTION * terms.prediction
        return -gain.mean() / length, terms

    def diagnose(terms: Elbo, gradient: Any) -> Info:
        return Info(
            elbo=terms.value.mean() / length,
            reconstruction=terms.reconstruction.mean() / length,
            divergence=terms.divergence.mean() / length,
            prediction=terms.prediction.mean() / length,
            gradient_norm=optax.tree.norm(gradient),
        )

    return optimise.updates(
        loss,
        state,
        weights,
        learning_rates=learning_rates,
        optimiser=optimise.clipped_adam(_CLIP),
        diagnose=diagnose,
        trainable=_trainable(state.model),
    )


def train(
    model: DVBF,
    sequences: Sequences,
    validation: Sequences,
    *,
    num_updates: int,
    batch_size: int = 128,
    learning_rate: float = 3e-3,
    warm_up: bool = True,
    updates_per_call: int = 100,
    callback: Callback = SILENT,
    key: Key,
) -> Snapshot:
    """Train a model with early stopping on validation data, or until the budget is spent.

    The learning rate is constant in the first half of all updates, then decays to zero.

    Args:
        model: An untrained model, or one to fine-tune.
        sequences: Training data.
        validation: Validation data.
        num_updates: Budget, a multiple of `updates_per_call`.
        batch_size: Windows in an update.
        learning_rate: Learning rate of Adam before it decays.
        warm_up: Whether the divergence begins with a small weight: an untrained model needs it.
        updates_per_call: Updates between two validations.
        callback: Observer.
        key: Consumed.

    Returns:
        The final snapshot; `model` is the one that did best in validation.

    Raises:
        DivergedError: If any diagnostic is not finite.
    """
    updates_per_call = min(updates_per_call, num_updates)
    train_key, probe_key = jax.random.split(key)
    calls = max(num_updates // updates_per_call, 1)

    def advance(at: Snapshot) -> Snapshot:
        call = len(at.history)
        progress = (call + jnp.arange(updates_per_call, dtype=float) / updates_per_call) / calls
        rising = jnp.clip(progress / _WARM_UP, 0, 1) if warm_up else jnp.ones_like(progress)
        state, info = step(
            at.state,
            sequences,
            weights=_FIRST_WEIGHT + (1 - _FIRST_WEIGHT) * rising,
            learning_rates=optimise.half_cosine(learning_rate, progress),
            batch_size=batch_size,
        )
        score = float(probe(state.model, validation, key=probe_key))
        count = (call + 1) * updates_per_call
        history = [*at.history, (count, {**optimise.to_floats(info), "validation": score})]
        # Models of the warm-up are not comparable with later ones.
        scores = [s["validation"] for n, s in history if not warm_up or n >= _WARM_UP * num_updates]
        is_best = not scores or score >= max(scores)
        since = len(scores) - scores.index(max(scores)) if scores else 0
        late = min(since, call + 1 - calls // 2) > max(_PATIENCE * calls, 1)
        stopped = "it no longer gets better on validation data" if late else ""
        if call == calls - 1 and not stopped:
            stopped = "the budget is spent"
        return Snapshot(state, history, num_updates, stopped, state.model if is_best else at.best)

    fresh = Snapshot(init(model, key=train_key), [], num_updates, best=model)
    return optimise.train(advance, fresh, callback)


@eqx.filter_jit
def probe(model: DVBF, validation: Sequences, *, key: Key) -> Scalar:
    """Compute the evidence lower bound of fixed validation windows, in nats per row that counts."""
    count = min(_NUM_PROBES, validation.starts.size)
    chosen = jnp.arange(count) * validation.starts.size // count
    weights = validation.take_weights(chosen)
    value = elbo(model, *validation.take(chosen), weights=weights, key=key).value
    if weights is None:
        return value.mean() / validation.length
    return value.sum() / weights.sum()


def _trainable(model: DVBF) -> Any:
    """Mark what is trained: all but the scalings and the noise factor, which is calibrated."""
    return eqx.tree_at(
        lambda m: (m.observations, m.actions, m.noise_factor),
        jax.tree.map(eqx.is_inexact_array, model),
        replace_fn=lambda part: jax.tree.map(lambda _: False, part),
    )
