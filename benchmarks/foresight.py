"""Test how well learnt models of four balls predict contacts, and the effect of pushing."""

import argparse
from collections.abc import Iterator
from pathlib import Path

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from benchmarks.tables import Table, write_table
from empowerment.data import collect
from empowerment.environments import BALLS, EnvFactory, joint, per_ball
from empowerment.environments.box2d import RADIUS
from empowerment.model import DVBF, Filter, predict
from empowerment.runs import PRESETS, load_run, read_manifest

_SETTINGS = PRESETS["balls"].experiment
_ROOM = EnvFactory(BALLS, _SETTINGS.num_repeats)
_DIAMETER = 2 * RADIUS
_APART, _ALONE = 1.1 * _DIAMETER, 2 * _DIAMETER
"""Distances above which two balls are not yet in contact, and above which a ball is alone."""

_SETTLING, _AHEAD, _PUSHED = 10, 10, 5
"""Numbers of actions: to warm up the filter, to predict, and to push."""

_HORIZONS = (1, 5, 10)
_COLUMNS = {"velocity": slice(2, 4), "ranges": slice(4, None)}

_MIDDLE, _ASIDE = np.array([5.0, 5.0]), ((1.0, 1.0), (9.0, 9.0))
"""Position of the pushing ball, and of the two balls that are not involved."""

_ANGLES = np.linspace(0, 2 * np.pi, 16, endpoint=False)
_DIRECTIONS = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)], axis=1)
_NEIGHBOURS = {"none": (3.0, 0.0), "idle": (1.01, 0.0), "pushes back": (1.01, -1.0)}
"""Neighbours of the pushing ball: distance in diameters, and force relative to the push."""

_Window = tuple[np.ndarray, np.ndarray, bool]
"""Observations and actions of a ball, and whether it meets another after the warm-up."""

_Pushes = dict[str, tuple[np.ndarray, np.ndarray]]
"""Observations and actions of the pushing ball in all directions, by its neighbour."""


def windows(steps: int, seed: int) -> Iterator[_Window]:
    """Yield windows of random data in which a ball meets another, or stays alone."""
    length, balls = _SETTLING + _AHEAD + 1, range(_SETTINGS.agents)
    data, _ = collect(_ROOM, steps=steps, seed=seed)
    for episode in data.episodes:
        observations = per_ball(episode.observations, len(balls))
        actions = per_ball(episode.actions, len(balls))
        positions = observations[..., :2].astype(float)
        distances = np.linalg.norm(positions[:, :, None] - positions[:, None], axis=-1)
        distances[:, balls, balls] = np.inf
        nearest = distances.min(-1)
        for start in range(0, episode.length + 1 - length, _AHEAD // 2):
            rows = slice(start, start + length)
            for ball in balls:
                later = nearest[rows, ball][_SETTLING:]
                meets = later[0] > _APART and later[1:].min() <= _DIAMETER
                if meets or later.min() > _ALONE:
                    yield observations[rows, ball], actions[rows, ball][:-1], meets


def predictions(model: DVBF, observations: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """Filter the beginning of each window, and predict the rest open-loop."""
    windows = jnp.asarray(observations, float), jnp.asarray(actions, float)
    return np.asarray(_predict(model, *windows))


@eqx.filter_jit
def _predict(model: DVBF, observations: Array, actions: Array) -> Array:
    def of_window(observations: Array, actions: Array) -> Array:
        states = Filter(model).run(observations[: _SETTLING + 1], actions[:_SETTLING])
        future = predict(model, states[-1], model.actions.scaled(actions[_SETTLING:]))
        return model.observations.physical(future)

    return jax.vmap(of_window)(observations, actions)


def meeting(model: DVBF, chosen: list[_Window]) -> Iterator[dict[str, object]]:
    """Yield mean squared errors relative to the variance of each column: contact, and alone."""
    observations, actions, meets = (np.array(each) for each in zip(*chosen, strict=True))
    predicted = predictions(model, observations, actions)
    future, now = observations[:, _SETTLING + 1 :], observations[:, _SETTLING, None]
    units = observations.std((0, 1))
    for name, those in (("meets another", meets), ("alone", ~meets)):
        row: dict[str, object] = {"ball": name}
        for column, which in _COLUMNS.items():
            for h in _HORIZONS:
                own, persistent = (
                    np.square((each - future)[those, h - 1] / units)[..., which].mean()
                    for each in (predicted, np.repeat(now, _AHEAD, axis=1))
                )
                row[f"{column}, h = {h}"] = f"{own:.3f} ({persistent:.2f})"
        yield row


def pushing(neighbour: str) -> tuple[np.ndarray, np.ndarray]:
    """Simulate a ball that pushes with full force; return its observations and actions."""
    room, (distance, share) = _ROOM(), _NEIGHBOURS[neighbour]
    assert isinstance(room.action_space, gymnasium.spaces.Box)
    force = room.action_space.high[0]
    observations, actions = [], []
    for direction in _DIRECTIONS:
        positions = np.array([_MIDDLE, _MIDDLE + distance * _DIAMETER * direction, *_ASIDE])
        rows, pushes = [room.reset(options={"positions": positions})[0]], []
        for step in range(_SETTLING + _PUSHED):
            forces = np.zeros((_SETTINGS.agents, 2), np.float32)
            if step >= _SETTLING:
                forces[:2] = force * direction, share * force * direction
            rows.append(room.step(joint(forces))[0])
            pushes.append(forces[0])
        observations.append(per_ball(np.array(rows), _SETTINGS.agents)[:, 0])
        actions.append(np.array(pushes))
    room.close()
    return np.array(observations), np.array(actions)


def resisted(model: DVBF, pushes: _Pushes) -> dict[str, object]:
    """Compute the distance that a pushing ball moves, predicted and simulated."""
    row: dict[str, object] = {}
    for neighbour, (observations, actions) in pushes.items():
        own, simulated = (
            ((each[:, -1, :2] - observations[:, _SETTLING, :2]) * _DIRECTIONS).sum(1).mean()
            for each in (predictions(model, observations, actions), observations)
        )
        row[f"neighbour: {neighbour}"] = f"{own:.2f} ({simulated:.2f})"
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, nargs="+", help="run folders of four balls")
    parser.add_argument("--steps", type=int, default=5000, help="steps of random data to predict")
    options = parser.parse_args()
    chosen = list(windows(options.steps, seed=1000))
    pushes = {neighbour: pushing(neighbour) for neighbour in _NEIGHBOURS}
    met: Table = []
    pushed: Table = []
    for folder in options.runs:
        for rounds in range(read_manifest(folder).get("num_rounds", 1)):
            run = load_run(folder, rounds=rounds)
            model, updates = run.agent.model, run.experiment.model.updates
            assert model is not None, f"Expected {folder} to have a learnt model."
            about: dict[str, object] = {"updates": updates, "seed": run.seed, "rounds": rounds}
            met += [about | row for row in meeting(model, chosen)]
            pushed.append(about | resisted(model, pushes))
            print(*met[-2:], pushed[-1], sep="\n", flush=True)
    write_table("balls-meeting", met, by=("updates", "seed", "rounds", "ball"))
    write_table("balls-pushing", pushed, by=("updates", "seed", "rounds"))


if __name__ == "__main__":
    main()
