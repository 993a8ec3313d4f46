"""See how well the learnt model of four balls foresees that they meet, and what pushing brings."""

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
from empowerment.experiments import PRESETS, load_agent
from empowerment.model import DVBF, Filter, predict

_SETTINGS = PRESETS["balls"]
_ROOM = EnvFactory(BALLS, _SETTINGS.action_repeat)
_DIAMETER = 2 * RADIUS
_APART, _ALONE = 1.1 * _DIAMETER, 2 * _DIAMETER
"""Farther than the one, balls are not yet together; farther than the other, each is alone."""

_SETTLING, _AHEAD, _PUSHED = 10, 10, 5
"""Actions in which the filter settles, that are foreseen, and that push."""

_HORIZONS = (1, 5, 10)
_CHANNELS = {"velocity": slice(2, 4), "ranges": slice(4, None)}

_MIDDLE, _ASIDE = np.array([5.0, 5.0]), ((1.0, 1.0), (9.0, 9.0))
"""Where a ball pushes from, and where those are that have no part in it."""

_ANGLES = np.linspace(0, 2 * np.pi, 16, endpoint=False)
_WAYS = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)], axis=1)
_NEIGHBOURS = {"none": (3.0, 0.0), "idle": (1.01, 0.0), "pushes back": (1.01, -1.0)}
"""Of a ball that pushes: how far off its neighbour is, in diameters, and its share of the force."""

_Window = tuple[np.ndarray, np.ndarray, bool]
"""What a ball saw, what it did, and whether it meets another after the filter has settled."""

_Pushes = dict[str, tuple[np.ndarray, np.ndarray]]
"""By its neighbour, what a ball saw and did that pushed each way."""


def windows(steps: int, seed: int) -> Iterator[_Window]:
    """Give windows of random data in which a ball meets another, or stays alone."""
    length = _SETTLING + _AHEAD + 1
    data, _ = collect(_ROOM, steps=steps, seed=seed)
    for episode in data.episodes:
        seen = per_ball(episode.observations, _SETTINGS.agents)
        done = per_ball(episode.actions, _SETTINGS.agents)
        places = seen[..., :2].astype(float)
        gaps = np.linalg.norm(places[:, :, None] - places[:, None], axis=-1)
        gaps[:, np.arange(_SETTINGS.agents), np.arange(_SETTINGS.agents)] = np.inf
        nearest = gaps.min(-1)
        for start in range(0, episode.length + 1 - length, _AHEAD // 2):
            rows = slice(start, start + length)
            for ball in range(_SETTINGS.agents):
                later = nearest[rows, ball][_SETTLING:]
                meets = later[0] > _APART and later[1:].min() <= _DIAMETER
                if meets or later.min() > _ALONE:
                    yield seen[rows, ball], done[rows, ball][:-1], meets


def observation_density(model: DVBF, seen: np.ndarray, done: np.ndarray) -> np.ndarray:
    """Filter the beginning of each window, and predict the rest."""
    return np.asarray(_foresee(model, jnp.asarray(seen, float), jnp.asarray(done, float)))


@eqx.filter_jit
def _foresee(model: DVBF, seen: Array, done: Array) -> Array:
    def of_window(seen: Array, done: Array) -> Array:
        states = Filter(model).run(seen[: _SETTLING + 1], done[:_SETTLING])
        ahead = predict(model, states[-1], model.actions.scaled(done[_SETTLING:]))
        return model.observations.physical(ahead)

    return jax.vmap(of_window)(seen, done)


def meeting(model: DVBF, found: list[_Window]) -> Iterator[dict[str, object]]:
    """Give mean square errors in units of the variance of a channel, by what becomes of a ball."""
    seen, done, meets = (np.array(each) for each in zip(*found, strict=True))
    ahead = observation_density(model, seen, done)
    came, now = seen[:, _SETTLING + 1 :], seen[:, _SETTLING, None]
    units = seen.std((0, 1))
    for name, those in (("meets another", meets), ("alone", ~meets)):
        row: dict[str, object] = {"ball": name}
        for channel, which in _CHANNELS.items():
            for h in _HORIZONS:
                own, persistent = (
                    np.square((each - came)[those, h - 1] / units)[..., which].mean()
                    for each in (ahead, np.repeat(now, _AHEAD, axis=1))
                )
                row[f"{channel}, h = {h}"] = f"{own:.3f} ({persistent:.2f})"
        yield row


def pushing(neighbour: str) -> tuple[np.ndarray, np.ndarray]:
    """Let a ball push with all its force toward its neighbour, and give what it saw and did."""
    room, (far, share) = _ROOM(), _NEIGHBOURS[neighbour]
    assert isinstance(room.action_space, gymnasium.spaces.Box)
    force = room.action_space.high[0]
    seen, done = [], []
    for way in _WAYS:
        places = np.array([_MIDDLE, _MIDDLE + far * _DIAMETER * way, *_ASIDE])
        observed, _ = room.reset(options={"positions": places})
        rows, actions = [observed], []
        for step in range(_SETTLING + _PUSHED):
            forces = np.zeros((_SETTINGS.agents, 2), np.float32)
            if step >= _SETTLING:
                forces[:2] = force * way, share * force * way
            rows.append(room.step(joint(forces))[0])
            actions.append(forces[0])
        seen.append(per_ball(np.array(rows), _SETTINGS.agents)[:, 0])
        done.append(np.array(actions))
    room.close()
    return np.array(seen), np.array(done)


def resisted(model: DVBF, pushes: _Pushes) -> dict[str, object]:
    """Give how far a ball gets that pushes, as foreseen and as it is."""
    row: dict[str, object] = {}
    for neighbour, (seen, done) in pushes.items():
        ahead = observation_density(model, seen, done)
        foreseen, came = (
            ((each[:, -1, :2] - seen[:, _SETTLING, :2]) * _WAYS).sum(1).mean()
            for each in (ahead, seen)
        )
        row[f"neighbour: {neighbour}"] = f"{foreseen:.2f} ({came:.2f})"
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, nargs="+", help="run folders of four balls")
    parser.add_argument("--steps", type=int, default=5000)
    given = parser.parse_args()
    found = list(windows(given.steps, seed=1000))
    pushes = {neighbour: pushing(neighbour) for neighbour in _NEIGHBOURS}
    met: Table = []
    pushed: Table = []
    for folder in given.runs:
        for rounds in range(load_agent(folder).experiment.rounds + 1):
            made = load_agent(folder, rounds=rounds)
            assert made.model is not None, f"Expected {folder} to have a learnt model."
            updates = made.experiment.model.model_updates
            about: dict[str, object] = {"updates": updates, "seed": made.seed, "rounds": rounds}
            met += [about | row for row in meeting(made.model, found)]
            pushed.append(about | resisted(made.model, pushes))
            print(*met[-2:], pushed[-1], sep="\n", flush=True)
    write_table("balls-meeting", met, by=("updates", "seed", "rounds", "ball"))
    write_table("balls-pushing", pushed, by=("updates", "seed", "rounds"))


if __name__ == "__main__":
    main()
