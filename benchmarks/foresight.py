"""See how well the learnt model of four balls foresees that they meet, on fresh random data."""

import argparse
from collections.abc import Iterator
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from benchmarks.tables import Table, write_table
from empowerment.data import collect
from empowerment.environments import BALLS, Held, per_ball
from empowerment.environments.physics import RADIUS
from empowerment.experiments import PRESETS, load_agent
from empowerment.model import DVBF, Filter, predict

_DIAMETER = 2 * RADIUS
_APART, _ALONE = 1.1 * _DIAMETER, 2 * _DIAMETER
"""Farther than the one, balls are not yet together; farther than the other, each is alone."""

_SETTLING, _AHEAD = 10, 10
_HORIZONS = (1, 5, 10)
_CHANNELS = {"velocity": slice(2, 4), "ranges": slice(4, None)}

_Window = tuple[np.ndarray, np.ndarray, bool]
"""What a ball saw, what it did, and whether it meets another after the filter has settled."""


def windows(steps: int, seed: int) -> Iterator[_Window]:
    """Give windows of random data in which a ball meets another, or stays alone."""
    settings, length = PRESETS["balls"], _SETTLING + _AHEAD + 1
    data, _ = collect(Held(BALLS, settings.action_repeat), steps=steps, seed=seed)
    for episode in data.episodes:
        seen = per_ball(episode.observations, settings.agents)
        done = per_ball(episode.actions, settings.agents)
        places = seen[..., :2].astype(float)
        gaps = np.linalg.norm(places[:, :, None] - places[:, None], axis=-1)
        gaps[:, np.arange(settings.agents), np.arange(settings.agents)] = np.inf
        nearest = gaps.min(-1)
        for start in range(0, episode.length + 1 - length, _AHEAD // 2):
            rows = slice(start, start + length)
            for ball in range(settings.agents):
                later = nearest[rows, ball][_SETTLING:]
                meets = later[0] > _APART and later[1:].min() <= _DIAMETER
                if meets or later.min() > _ALONE:
                    yield seen[rows, ball], done[rows, ball][:-1], meets


@eqx.filter_jit
def foresee(model: DVBF, seen: Array, done: Array) -> Array:
    """Filter the beginning of each window, and predict the rest."""

    def of_window(seen: Array, done: Array) -> Array:
        states = Filter(model).run(seen[: _SETTLING + 1], done[:_SETTLING])
        ahead = predict(model, states[-1], model.actions.scaled(done[_SETTLING:]))
        return model.observations.physical(ahead)

    return jax.vmap(of_window)(seen, done)


def judge(model: DVBF, found: list[_Window]) -> Iterator[dict[str, object]]:
    """Give mean square errors in units of the variance of a channel, by what becomes of a ball."""
    seen, done, meets = (np.array(each) for each in zip(*found, strict=True))
    ahead = foresee(model, jnp.asarray(seen, float), jnp.asarray(done, float))
    came, now = seen[:, _SETTLING + 1 :], seen[:, _SETTLING, None]
    units = seen.std((0, 1))
    for name, those in (("meets another", meets), ("alone", ~meets)):
        row: dict[str, object] = {"ball": name, "windows": int(those.sum())}
        for channel, which in _CHANNELS.items():
            for h in _HORIZONS:
                own, persistent = (
                    np.square((each - came)[those, h - 1] / units)[..., which].mean()
                    for each in (np.asarray(ahead), np.repeat(now, _AHEAD, axis=1))
                )
                row[f"{channel}, h = {h}"] = f"{own:.3f} ({persistent:.2f})"
        yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, nargs="+", help="run folders of four balls")
    parser.add_argument("--steps", type=int, default=5000)
    given = parser.parse_args()
    found = list(windows(given.steps, seed=1000))
    rows: Table = []
    for folder in given.runs:
        made = load_agent(folder, rounds=0)
        assert made.model is not None, f"{folder} has no learnt model"
        about: dict[str, object] = {
            "updates": made.experiment.model.model_updates,
            "seed": made.seed,
        }
        rows += [about | row for row in judge(made.model, found)]
        print(*rows[-2:], sep="\n", flush=True)
    write_table("foresight", rows, by=("updates", "seed", "ball"))


if __name__ == "__main__":
    main()
