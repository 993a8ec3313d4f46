"""Training a model: ascend the evidence lower bound over windows of data."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PyTree

from empowerment.model.dvbf import DVBF
from empowerment.model.elbo import Elbo, elbo
from empowerment.types import Key, Scalar

_CLIP = 10.0
"""The largest norm of a gradient."""

_FIRST_WEIGHT = 0.01
"""Of the divergence, at first."""

_WARM_UP = 0.3
"""The share of all updates in which the weight of the divergence rises to one."""

_PREDICTION = 0.2
"""The weight of predictions without measurements."""

_NUM_PROBES = 256
"""Windows of the data held out at which the model is looked at."""

_PATIENCE = 0.2
"""Of the whole budget, the time without a better look after which training stops. It runs from
when the learning rate begins to fall: before, looks differ by chance, and most is yet to come."""


class ModelState(eqx.Module):
    """What is carried from update to update.

    Attributes:
        model: So far.
        optimiser: What the optimiser remembers.
        num_updates: How many updates were made.
        key: Of what is to come.
    """

    model: DVBF
    optimiser: optax.OptState
    num_updates: Int[Array, ""]
    key: Key


class Sequences(eqx.Module):
    """Windows of data, scaled.

    Attributes:
        observations: All rows, one episode after the other.
        actions: What was done at each row.
        starts: The first row of each window.
        length: The number of rows in a window.
    """

    observations: Float[Array, "rows observation"]
    actions: Float[Array, "rows action"]
    starts: Int[Array, " windows"]
    length: int = eqx.field(static=True)

    def take(
        self, chosen: Int[Array, " chosen"]
    ) -> tuple[Float[Array, "chosen times observation"], Float[Array, "chosen steps action"]]:
        """Give observations and actions of some windows."""
        rows = self.starts[chosen][:, None] + jnp.arange(self.length)[None, :]
        return self.observations[rows], self.actions[rows[:, :-1]]


class Info(eqx.Module):
    """What is only for looking at: means over the updates of a call, in nats per row.

    Attributes:
        elbo: The evidence lower bound.
        reconstruction: Its first part.
        divergence: Its second.
        prediction: The log-density of what was observed after the filter was switched off.
        gradient_norm: Before clipping.
    """

    elbo: Scalar
    reconstruction: Scalar
    divergence: Scalar
    prediction: Scalar
    gradient_norm: Scalar


@dataclass(frozen=True)
class Snapshot:
    """Where training stands: enough to go on from, to the same bits.

    Attributes:
        state: What is carried from update to update.
        best: The model that did best on the data held out.
        history: After each call: updates made, and what there is to look at.
        stopped: Why training stopped, in words; empty while it goes on.
    """

    state: ModelState
    best: DVBF
    history: list[tuple[int, dict[str, float]]]
    stopped: str = ""


def init(model: DVBF, *, key: Key) -> ModelState:
    """Begin training.

    Args:
        model: Untrained, or to train further.
        key: Consumed.

    Returns:
        The state before the first update.
    """
    parameters, _ = _split(model)
    return ModelState(model, _optimiser().init(parameters), jnp.array(0), key)


@eqx.filter_jit
def step(
    state: ModelState,
    sequences: Sequences,
    *,
    weights: Float[Array, " updates"],
    learning_rates: Float[Array, " updates"],
    batch_size: int,
) -> tuple[ModelState, Info]:
    """Make many updates in one compiled call.

    Args:
        state: Where training stands.
        sequences: The data.
        weights: Of the divergence, for each update.
        learning_rates: One for each update.
        batch_size: Windows in an update.

    Returns:
        Where training stands afterwards, and what to look at.
    """
    parameters, rest = _split(state.model)
    key, batch_key = jax.random.split(state.key)

    def loss(parameters: DVBF, weight: Scalar, key: Key) -> tuple[Scalar, Elbo]:
        model: DVBF = eqx.combine(parameters, rest)
        choice_key, elbo_key = jax.random.split(key)
        chosen = jax.random.randint(choice_key, (batch_size,), 0, sequences.starts.size)
        found = elbo(model, *sequences.take(chosen), key=elbo_key)
        gain = found.value + (1 - weight) * found.divergence + _PREDICTION * found.prediction
        return -gain.mean() / sequences.length, found

    def update(carry, inputs):
        parameters, optimiser = carry
        weight, learning_rate, key = inputs
        gradient, found = jax.grad(loss, has_aux=True)(parameters, weight, key)
        with jax.numpy_dtype_promotion("standard"):  # Adam counts in whole numbers.
            changes, optimiser = _optimiser().update(gradient, optimiser)
        changes = jax.tree.map(lambda change: -learning_rate * change, changes)
        info = _look(found, sequences.length, optax.tree.norm(gradient))
        return (eqx.apply_updates(parameters, changes), optimiser), info

    keys = jax.random.split(batch_key, learning_rates.size)
    (parameters, optimiser), info = jax.lax.scan(
        update, (parameters, state.optimiser), (weights, learning_rates, keys)
    )
    made = state.num_updates + learning_rates.size
    after = ModelState(eqx.combine(parameters, rest), optimiser, made, key)
    return after, jax.tree.map(jnp.mean, info)


def train(
    model: DVBF,
    sequences: Sequences,
    held_out: Sequences,
    *,
    num_updates: int,
    batch_size: int = 128,
    learning_rate: float = 3e-3,
    warm_up: bool = True,
    updates_per_call: int = 100,
    progress: Callable[[Snapshot], None] = lambda snapshot: None,
    resume: Snapshot | None = None,
    key: Key,
) -> Snapshot:
    """Train a model until it no longer gets better on data held out, or the budget is spent.

    The learning rate stays for the first half of all updates, then falls to zero.

    Args:
        model: Untrained, or to train further.
        sequences: The data to learn from.
        held_out: The data to judge by.
        num_updates: The budget, in whole calls.
        batch_size: Windows in an update.
        learning_rate: Of Adam, before it falls.
        warm_up: Whether the divergence begins with a small weight: a fresh model needs it.
        updates_per_call: Updates between two looks at the model.
        progress: Called after each call with where training stands.
        resume: Where to go on from; the rest must be as it was before.
        key: Consumed.

    Returns:
        Where training stands in the end; `best` is the model.

    Raises:
        FloatingPointError: If anything is not finite.
    """
    updates_per_call = min(updates_per_call, num_updates)
    train_key, probe_key = jax.random.split(key)
    calls = max(num_updates // updates_per_call, 1)
    at = resume or Snapshot(init(model, key=train_key), model, [])
    for call in range(len(at.history), calls):
        if at.stopped:
            break
        places = (call + jnp.arange(updates_per_call, dtype=float) / updates_per_call) / calls
        rates = learning_rate * 0.5 * (1 + jnp.cos(jnp.pi * jnp.clip(2 * places - 1, 0, 1)))
        rising = jnp.clip(places / _WARM_UP, 0, 1) if warm_up else jnp.ones_like(places)
        state, info = step(
            at.state,
            sequences,
            weights=_FIRST_WEIGHT + (1 - _FIRST_WEIGHT) * rising,
            learning_rates=rates,
            batch_size=batch_size,
        )
        seen = {name: float(value) for name, value in vars(info).items()}
        seen["held_out"] = float(probe(state.model, held_out, key=probe_key))
        made = (call + 1) * updates_per_call
        if not all(map(math.isfinite, seen.values())):
            last = at.history[-1] if at.history else (0, {})
            raise FloatingPointError(
                f"Expected training to stay finite; got {seen} by update {made}. The last finite "
                f"figures were {last[1]} at update {last[0]}. Try a lower learning rate."
            )
        history = [*at.history, (made, seen)]
        # While the divergence hardly counts, a model is not to be compared with later ones.
        judged = [s["held_out"] for m, s in history if not warm_up or m >= _WARM_UP * num_updates]
        is_best = not judged or seen["held_out"] >= max(judged)
        since = len(judged) - judged.index(max(judged)) if judged else 0
        late = min(since, call + 1 - calls // 2) > max(_PATIENCE * calls, 1)
        stopped = "it no longer gets better on data held out" if late else ""
        if call == calls - 1 and not stopped:
            stopped = "the budget is spent"
        at = Snapshot(state, state.model if is_best else at.best, history, stopped)
        progress(at)
    return at


@eqx.filter_jit
def probe(model: DVBF, held_out: Sequences, *, key: Key) -> Scalar:
    """Give the evidence lower bound of windows that are always the same, in nats per row."""
    count = min(_NUM_PROBES, held_out.starts.size)
    chosen = jnp.arange(count) * held_out.starts.size // count
    return elbo(model, *held_out.take(chosen), key=key).value.mean() / held_out.length


def _look(found: Elbo, length: int, gradient_norm: Scalar) -> Info:
    """Average over sequences, per row."""
    return Info(
        elbo=found.value.mean() / length,
        reconstruction=found.reconstruction.mean() / length,
        divergence=found.divergence.mean() / length,
        prediction=found.prediction.mean() / length,
        gradient_norm=gradient_norm,
    )


def _split(model: DVBF) -> tuple[PyTree, PyTree]:
    """Tell what is learnt from what is not: the units stay."""
    learnt = jax.tree.map(eqx.is_inexact_array, model)
    learnt = eqx.tree_at(
        lambda m: (m.observations, m.actions, m.noise_factor),
        learnt,
        replace_fn=lambda part: jax.tree.map(lambda _: False, part),
    )
    return eqx.partition(model, learnt)


def _optimiser() -> optax.GradientTransformation:
    """Give Adam's direction; the learning rate is traced and comes in later."""
    return optax.chain(optax.clip_by_global_norm(_CLIP), optax.scale_by_adam())
