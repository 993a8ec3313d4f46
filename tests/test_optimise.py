"""The one training loop, on losses whose answers are known."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from empowerment import optimise
from empowerment.errors import DivergedError, EmpowermentError
from empowerment.optimise import SILENT, Callback, Snapshot

ADAM = optimise.clipped_adam(1.0)
MODEL = {"learnt": jnp.array([3.0, -2.0]), "fixed": jnp.array(5.0), "name": "x"}
TRAINABLE = {"learnt": True, "fixed": False, "name": False}


def loss(model: Any, target: Any, wanted: Any, key: Any):
    error = model["learnt"] - wanted + 0 * model["fixed"]
    return jnp.sum(error**2), jnp.sum(error**2)


def run(num_updates: int, **options: Any):
    state = optimise.init(MODEL, ADAM, trainable=TRAINABLE, key=jax.random.key(0))
    wanted = jnp.ones((num_updates, 2))
    return eqx.filter_jit(optimise.updates)(
        options.pop("loss", loss),
        state,
        wanted,
        learning_rates=jnp.full(num_updates, 0.05),
        optimiser=ADAM,
        diagnose=lambda cost, gradient: {"cost": cost, "norm": optax.tree.norm(gradient)},
        trainable=TRAINABLE,
        **options,
    )


def test_updates_descend_and_leave_the_rest_as_it_is():
    state, diagnostics = run(300)
    np.testing.assert_allclose(state.model["learnt"], [1, 1], atol=1e-2)
    assert float(state.model["fixed"]) == 5
    assert state.model["name"] == "x"
    assert int(state.num_updates) == 300
    assert float(diagnostics["cost"]) > 0


def test_updates_equal_a_plain_loop():
    state, _ = run(3)
    parameters = MODEL["learnt"]
    memory = ADAM.init(parameters)
    for _ in range(3):
        gradient = 2 * (parameters - 1)
        with jax.numpy_dtype_promotion("standard"):
            changes, memory = ADAM.update(gradient, memory)
        parameters = parameters - 0.05 * changes  # pyright: ignore[reportOperatorIssue]
    np.testing.assert_allclose(state.model["learnt"], parameters, rtol=1e-6)


def test_micro_batches_average_their_gradients():
    def noisy(model: Any, target: Any, wanted: Any, key: Any):
        value = jnp.sum(model["learnt"] * (1 + jax.random.normal(key, (2,))))
        return value, value

    _, one = run(1, loss=noisy, micro_batches=1)
    norms = [float(run(1, loss=noisy, micro_batches=count)[1]["norm"]) for count in (1, 1000)]
    assert norms[0] == float(one["norm"])
    assert norms[1] == pytest.approx(np.sqrt(2), abs=0.15)  # The mean gradient is (1, 1).


def test_a_target_follows_slowly():
    state = optimise.init(
        MODEL, ADAM, trainable=TRAINABLE, target=jnp.zeros(2), key=jax.random.key(0)
    )

    def to_target(model: Any, target: Any, wanted: Any, key: Any):
        return jnp.sum((model["learnt"] - wanted) ** 2) + 0 * jnp.sum(target), None

    after, _ = optimise.updates(
        to_target,
        state,
        jnp.ones((2, 2)),
        learning_rates=jnp.zeros(2),
        optimiser=ADAM,
        diagnose=lambda auxiliary, gradient: jnp.zeros(()),
        trainable=TRAINABLE,
        track=lambda target, model, _: target + 0.5 * (model["learnt"] - target),
    )
    np.testing.assert_allclose(after.target, 0.75 * MODEL["learnt"])


@pytest.mark.parametrize("rates", ["half", "full"])
def test_schedules_end_at_zero(rates: str):
    if rates == "half":
        found = optimise.half_cosine(0.1, jnp.linspace(0, 1, 101))
        np.testing.assert_allclose(found[:51], 0.1, rtol=1e-5)
    else:
        found = optimise.full_cosine(0.1, 1000)
        assert float(found[0]) == pytest.approx(0.1)
    assert abs(float(found[-1])) < 1e-5
    assert bool(jnp.all(jnp.diff(found) <= 1e-7))


def counting(stop: int, wrong: int | None = None):
    """Advance by ten updates a call; a diagnostic is not finite at some call."""

    def advance(at: Snapshot) -> Snapshot:
        call = len(at.history) + 1
        value = float("nan") if call == wrong else 1.0 / call
        stopped = "enough" if call == stop else ""
        return Snapshot(at.state, [*at.history, (10 * call, {"cost": value})], 10 * stop, stopped)

    return advance


FRESH = Snapshot(optimise.init(MODEL, ADAM, trainable=TRAINABLE, key=jax.random.key(0)), [], 30)


def test_training_goes_on_until_it_stops_and_calls_back():
    seen: list[Snapshot] = []
    last = optimise.train(counting(3), FRESH, Callback(seen.append))
    assert [at.history[-1][0] for at in seen] == [10, 20, 30]
    assert last.stopped == "enough"
    resumed = optimise.train(counting(3), FRESH, Callback(resume=lambda fresh: seen[0]))
    assert resumed.history == last.history
    done = optimise.train(counting(3), FRESH, Callback(resume=lambda fresh: seen[-1]))
    assert done is seen[-1]


def test_what_is_not_finite_is_an_error_that_names_the_last_finite_figures():
    with pytest.raises(DivergedError, match=r"by update 20\. The last finite .* at update 10"):
        optimise.train(counting(3, wrong=2), FRESH, SILENT)
    assert issubclass(DivergedError, EmpowermentError)
