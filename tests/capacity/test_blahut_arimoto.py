"""Blahut-Arimoto against closed forms, textbook code and what must hold of any channel."""

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from empowerment.capacity import (
    AdditiveChannel,
    DenseChannel,
    Stopped,
    blahut_arimoto,
)
from empowerment.errors import NotConvergedError

seeds = st.integers(0, 2**32 - 1)


def information(source: np.ndarray, matrix: np.ndarray) -> float:
    """The mutual information of source and output, term by term."""
    output = source @ matrix
    total = 0.0
    for probability, row in zip(source, matrix, strict=True):
        for share, mean in zip(row, output, strict=True):
            if probability > 0 and share > 0:
                total += probability * share * math.log(share / mean)
    return total


def textbook(matrix: np.ndarray, gap: float = 1e-6) -> tuple[float, float]:
    """The plain iteration of Blahut (1972), and the bounds it ends with."""
    source = np.full(len(matrix), 1 / len(matrix))
    lower, upper = -math.inf, math.inf
    for _ in range(50_000):
        ratio = np.where(matrix > 0, matrix / (source @ matrix), 1.0)
        divergence = (matrix * np.log(ratio)).sum(axis=1)
        lower, upper = float(source @ divergence), float(divergence.max())
        if upper - lower < gap:
            break
        source = source * np.exp(divergence)
        source /= source.sum()
    return lower, upper


def random_channel(seed: int, inputs: int = 4, outputs: int = 5) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(outputs, 0.5), size=inputs)


def binary_entropy(share: float) -> float:
    return -sum(p * math.log(p) for p in (share, 1 - share) if p > 0)


def symmetric(error: float) -> np.ndarray:
    return np.array([[1 - error, error], [error, 1 - error]])


def erasure(error: float) -> np.ndarray:
    return np.array([[1 - error, error, 0.0], [0.0, error, 1 - error]])


def z_channel(error: float) -> np.ndarray:
    return np.array([[1.0, 0.0], [error, 1 - error]])


def z_capacity(error: float) -> float:
    return math.log1p((1 - error) * error ** (error / (1 - error)))


def typewriter(letters: int) -> np.ndarray:
    return 0.5 * (np.eye(letters) + np.roll(np.eye(letters), 1, axis=1))


ERRORS = (0.01, 0.1, 0.25, 0.5, 0.9)
CLOSED_FORMS: dict[str, tuple[np.ndarray, float]] = {
    **{f"symmetric {e}": (symmetric(e), math.log(2) - binary_entropy(e)) for e in ERRORS},
    **{f"erasure {e}": (erasure(e), (1 - e) * math.log(2)) for e in ERRORS},
    **{f"z {e}": (z_channel(e), z_capacity(e)) for e in ERRORS},
    "typewriter": (typewriter(26), math.log(13)),
    "odd typewriter": (typewriter(3), math.log(3) - math.log(2)),
    "noiseless": (np.eye(7), math.log(7)),
    "noiseless, shuffled": (np.eye(7)[[3, 1, 0, 6, 5, 2, 4]], math.log(7)),
    "useless": (np.full((4, 3), 1 / 3), 0.0),
    "one input": (np.array([[0.2, 0.8]]), 0.0),
    "one output": (np.ones((3, 1)), 0.0),
}


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_closed_forms(name: str):
    matrix, truth = CLOSED_FORMS[name]
    found = blahut_arimoto(matrix)
    assert found.value == pytest.approx(truth, rel=0, abs=1e-6)
    assert found.lower - 1e-12 <= truth <= found.upper + 1e-12
    assert found.upper - found.lower <= 1e-6
    assert found.stopped is Stopped.CONVERGED
    assert information(found.source, matrix) == pytest.approx(found.lower, abs=1e-12)


def test_source_of_the_z_channel_is_the_known_one():
    """The noisy input is sent with probability 1 / ((1-e) (1 + exp(H(e) / (1-e))))."""
    error = 0.25
    found = blahut_arimoto(z_channel(error), tolerance=1e-10)
    noisy = 1 / ((1 - error) * (1 + math.exp(binary_entropy(error) / (1 - error))))
    np.testing.assert_allclose(found.source, [1 - noisy, noisy], atol=1e-4)


@given(seeds, st.sampled_from([(2, 2), (3, 7), (9, 4), (6, 6)]))
def test_bounds_and_source_are_what_they_say(seed: int, shape: tuple[int, int]):
    matrix = random_channel(seed, *shape)
    found = blahut_arimoto(matrix)
    assert 0 <= found.lower <= found.value <= found.upper
    assert found.value <= math.log(min(shape)) + 1e-6
    assert found.source.shape == (shape[0],)
    assert (found.source >= 0).all()
    assert found.source.sum() == pytest.approx(1, abs=1e-9)
    assert information(found.source, matrix) == pytest.approx(found.lower, abs=1e-9)


@given(seeds)
def test_agrees_with_the_textbook(seed: int):
    matrix = random_channel(seed)
    lower, upper = textbook(matrix)
    found = blahut_arimoto(matrix)
    assert found.lower <= upper + 1e-12
    assert lower <= found.upper + 1e-12
    # The textbook is slow where inputs are nearly useless: then its own gap is allowed for.
    assert found.value == pytest.approx(0.5 * (lower + upper), abs=1e-6 + 0.5 * (upper - lower))
    assert upper - lower < 1e-4


@given(seeds)
def test_processing_the_output_cannot_add_capacity(seed: int):
    matrix, processing = random_channel(seed), random_channel(seed + 1, 5, 6)
    before, after = blahut_arimoto(matrix), blahut_arimoto(matrix @ processing)
    assert after.lower <= before.upper


@given(seeds)
def test_names_of_inputs_and_outputs_do_not_matter(seed: int):
    matrix, rng = random_channel(seed), np.random.default_rng(seed)
    shuffled = matrix[rng.permutation(4)][:, rng.permutation(5)]
    assert blahut_arimoto(shuffled).value == pytest.approx(blahut_arimoto(matrix).value, abs=1e-6)


@given(seeds)
def test_second_copy_of_an_input_adds_nothing(seed: int):
    matrix = random_channel(seed)
    doubled = np.concatenate([matrix, matrix[:1]])
    assert blahut_arimoto(doubled).value == pytest.approx(blahut_arimoto(matrix).value, abs=1e-6)


@given(seeds)
def test_further_input_cannot_take_capacity_away(seed: int):
    matrix = random_channel(seed, 5)
    assert blahut_arimoto(matrix[:4]).lower <= blahut_arimoto(matrix).upper


def test_giving_up_is_an_error_unless_it_is_wanted():
    matrix, truth = CLOSED_FORMS["z 0.9"]
    with pytest.raises(NotConvergedError, match=r"to within 1e-06 nats; got .* after 3 iterations"):
        blahut_arimoto(matrix, max_iterations=3)
    found = blahut_arimoto(matrix, max_iterations=3, throw=False)
    assert found.stopped is Stopped.ITERATIONS
    assert found.iterations == 3
    assert found.lower <= truth <= found.upper
    assert found.upper - found.lower > 1e-6
    assert information(found.source, matrix) == pytest.approx(found.lower, abs=1e-12)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-9])
def test_bounds_are_as_close_as_was_asked_for(tolerance: float):
    matrix, truth = CLOSED_FORMS["z 0.25"]
    found = blahut_arimoto(matrix, tolerance=tolerance)
    assert found.upper - found.lower <= tolerance
    assert found.lower - 1e-12 <= truth <= found.upper + 1e-12


BAD_TABLES = {
    "negative": ([[1.2, -0.2], [0.5, 0.5]], "smallest entry of -0.2"),
    "sum": ([[0.5, 0.4], [0.5, 0.5]], r"rows that sum to 0\.9 at least"),
    "counts": ([[5.0, 5.0], [1.0, 9.0]], "probabilities that sum to one"),
    "nan": ([[np.nan, 1.0], [0.5, 0.5]], "smallest entry of nan"),
    "infinite": ([[np.inf, 0.0], [0.5, 0.5]], "probabilities that sum to one"),
    "no inputs": (np.empty((0, 3)), r"inputs by outputs; got shape \(0, 3\)"),
    "no outputs": (np.empty((3, 0)), r"inputs by outputs; got shape \(3, 0\)"),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_bad_tables_are_refused(name: str):
    table, sentence = BAD_TABLES[name]
    with pytest.raises(ValueError, match=f"^Expected .*{sentence}"):
        blahut_arimoto(np.array(table))


@pytest.mark.parametrize("tolerance", [0.0, -1.0, float("nan")])
def test_tolerance_must_be_positive(tolerance: float):
    with pytest.raises(ValueError, match=f"Expected tolerance to be positive; got {tolerance}"):
        blahut_arimoto(np.eye(2), tolerance=tolerance)


def tabulate(points: np.ndarray, scale: np.ndarray, spacing: float) -> DenseChannel:
    """The same channel as one big table over a fine grid of outputs."""
    factors = []
    for axis, width in zip(points.T, scale, strict=True):
        outputs = np.arange(axis.min() - 8 * width, axis.max() + 8 * width, spacing * width)
        factors.append(np.exp(-0.5 * ((axis[:, None] - outputs) / width) ** 2))
    table = factors[0]
    for factor in factors[1:]:
        table = (table[:, :, None] * factor[:, None, :]).reshape(len(points), -1)
    return DenseChannel(table / table.sum(axis=1, keepdims=True))


ADDITIVE = {
    "close pair": ([[0.0], [1.0]], [1.0]),
    "three": ([[-1.0], [0.3], [2.0]], [0.5]),
    "repeated": ([[1.0], [1.0], [3.0]], [1.0]),
    "line": (np.linspace(-4, 4, 17)[:, None], [0.8]),
    "plane": (np.random.default_rng(0).uniform(0, 3, (12, 2)), [1.0, 1.0]),
    "stretched plane": (np.random.default_rng(1).uniform(-1, 1, (9, 2)), [0.5, 0.2]),
}


@pytest.mark.parametrize("name", ADDITIVE)
def test_additive_channel_is_its_fine_table(name: str):
    points, scale = (np.array(part) for part in ADDITIVE[name])
    table = tabulate(points, scale, 0.2)
    truth = blahut_arimoto(table).value
    source = np.random.default_rng(2).dirichlet(np.ones(len(points)))
    for spacing, error in ((1.0, 3e-4), (0.7, 1e-5)):  # as blahut_arimoto.py states
        channel = AdditiveChannel(points, scale, spacing)
        assert channel.num_inputs == len(points)
        assert blahut_arimoto(channel).value == pytest.approx(truth, abs=error)
    fine = AdditiveChannel(points, scale, 0.3)
    np.testing.assert_allclose(fine.divergence(source), table.divergence(source), atol=1e-6)


@given(seeds)
def test_divergence_at_the_inputs_is_theirs(seed: int):
    rng = np.random.default_rng(seed)
    points, scale = rng.uniform(-5, 5, (8, 2)), rng.uniform(0.5, 2, 2)
    channel, source = AdditiveChannel(points, scale), rng.dirichlet(np.ones(8))
    np.testing.assert_allclose(
        channel.divergence_at(points, source), channel.divergence(source), rtol=0, atol=1e-12
    )


def test_divergence_between_the_inputs_is_that_of_an_input_there():
    points, middle = np.array([[0.0, 0.0], [4.0, 1.0], [2.0, 3.0]]), np.array([[2.0, 1.2]])
    source = np.array([0.5, 0.2, 0.3])
    channel = AdditiveChannel(points, np.ones(2), 0.3)
    table = tabulate(np.concatenate([points, middle]), np.ones(2), 0.2)
    expected = table.divergence(np.append(source, 0.0))[3]
    assert channel.divergence_at(middle, source)[0] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("width", "nats"),
    # An amplitude-limited Gaussian channel: centre and wall of the ball.
    [(100, 3.225), (50, 2.570), (40, 2.365), (20, 1.758), (10, 1.219), (5, 0.775)],
)
def test_interval_seen_through_noise(width: int, nats: float):
    points = np.linspace(0, width, 4 * width + 1)[:, None]
    found = blahut_arimoto(AdditiveChannel(points, np.ones(1)), tolerance=1e-4)
    assert found.value == pytest.approx(nats, abs=0.002)


def test_short_interval_uses_its_ends_alone():
    """Smith (1971): below 3.3 standard deviations two inputs are best."""
    points = np.linspace(-1, 1, 5)[:, None]
    found = blahut_arimoto(AdditiveChannel(points, np.ones(1)))
    np.testing.assert_allclose(found.source[[0, -1]], 0.5, atol=1e-3)
    ends = blahut_arimoto(AdditiveChannel(points[[0, -1]], np.ones(1)))
    assert found.value == pytest.approx(ends.value, abs=1e-6)


BAD_ADDITIVE = {
    "three axes": (np.zeros((2, 3)), np.ones(3), r"one or two axes; got shape \(2, 3\)"),
    "no points": (np.empty((0, 2)), np.ones(2), r"one or two axes; got shape \(0, 2\)"),
    "no noise": (np.zeros((2, 2)), np.array([1.0, 0.0]), r"scale to be positive .*\[1.0, 0.0\]"),
    "nan": (np.zeros((2, 1)), np.array([np.nan]), "scale to be positive"),
}


@pytest.mark.parametrize("name", BAD_ADDITIVE)
def test_bad_additive_channels_are_refused(name: str):
    points, scale, sentence = BAD_ADDITIVE[name]
    with pytest.raises(ValueError, match=sentence):
        AdditiveChannel(points, scale)
