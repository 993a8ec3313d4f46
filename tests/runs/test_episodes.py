"""Recorded episodes: frames, columns and empowerment belong to the same times."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box
from tests.controller.controllers_for_tests import filter_bundle, with_bound
from tests.test_examples import paying_bundle

from empowerment.controller import Bundle
from empowerment.controller.reference import reference_bound, reference_step
from empowerment.data import RandomActor, spaces_of
from empowerment.environments import EnvFactory
from empowerment.files import read_json
from empowerment.report import REPLAY, StoredReplay, film_of
from empowerment.report.video import read_video
from empowerment.runs.episodes import record, write_replay

SEED = 3
RATE = 50


class Dial(gymnasium.Env[np.ndarray, np.ndarray]):
    """Observe the time and twice the last action; frames are as bright as it is late."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": RATE}  # noqa: RUF012 (as Gymnasium's)

    def __init__(
        self,
        *,
        render_mode: str | None = None,
        length: int = 40,
        fails: bool = False,
        actions: int = 1,
    ):
        self.observation_space = Box(-np.inf, np.inf, (2,), np.float32)
        self.action_space = Box(-1, 1, (actions,), np.float32)
        self.render_mode, self.length, self.fails = render_mode, length, fails
        self.dt = 1 / RATE

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        self.time, self.pushed = 0, float(seed or 0)
        return self._seen(), {}

    def step(self, action: np.ndarray):
        self.time, self.pushed = self.time + 1, 2 * float(action[0])
        return self._seen(), 0.0, self.time >= self.length, False, {}

    def _seen(self) -> np.ndarray:
        return np.array([self.time, self.pushed], np.float32)

    def render(self):  # pyright: ignore[reportIncompatibleMethodOverride]
        if self.fails:
            raise RuntimeError("no <screen>")
        return np.full((32, 48, 3), 6 * self.time % 256, np.uint8)


class Blind(Dial):
    """Render nothing."""

    def __init__(self, **options: Any):
        if options.get("render_mode"):
            raise TypeError("blind")
        super().__init__(**options)


@pytest.fixture(autouse=True)
def registered():
    kinds = {"Dial": (Dial, {}), "Blind": (Blind, {}), "Broken": (Dial, {"fails": True})}
    kinds["Two"] = (Dial, {"actions": 2})
    kinds["Long"] = (Dial, {"length": 10_000})
    for name, (kind, options) in kinds.items():
        gymnasium.register(f"{name}-v0", entry_point=kind, kwargs=options)  # pyright: ignore[reportArgumentType]
    yield
    for name in kinds:
        del gymnasium.registry[f"{name}-v0"]


def test_frames_are_those_of_their_times():
    found = record(EnvFactory("Dial-v0"), None, seed=SEED)
    assert (found.stride, found.fps, found.interval) == (2, 25, 0.02)
    assert found.episode.terminated
    assert found.frames is not None
    assert found.frames[:, 0, 0, 0].tolist() == [12 * frame for frame in range(20)]
    assert found.unfilmed == ""


def test_repeated_actions_count_once():
    found = record(EnvFactory("Dial-v0", 4), None, seed=SEED)
    assert (found.stride, found.fps, found.interval) == (1, 12.5, 0.08)
    assert found.frames is not None
    assert found.frames[:, 0, 0, 0].tolist() == [24 * frame for frame in range(10)]


def test_a_long_episode_is_filmed_in_part_and_random_actions_end_there():
    factory = EnvFactory("Long-v0")
    found = record(factory, None, seed=SEED)
    assert found.num_actions == found.episode.length == 500
    environment = factory()
    actor = RandomActor(spaces_of(environment, "Long-v0"))
    policy = record(factory, actor, seed=SEED)
    assert policy.episode.length == 2000
    assert policy.frames is not None
    assert len(policy.frames) == 250


@pytest.mark.parametrize(
    ("name", "why"),
    [("Blind", "renders no frames"), ("Broken", r"RuntimeError: no <screen>\).*MUJOCO_GL=egl")],
)
def test_what_cannot_be_filmed_is_recorded_without(name: str, why: str):
    found = record(EnvFactory(f"{name}-v0"), None, seed=SEED)
    assert found.frames is None
    assert found.episode.length == 40
    assert re.search(why, found.unfilmed)
    assert record(EnvFactory("Dial-v0"), None, seed=SEED, unfilmed="so").unfilmed == "so"


def tracked() -> Bundle:
    """A controller with a filter, for two observed numbers and one action."""
    return with_bound(filter_bundle(SEED, seen=2, done=1))


def written(tmp_path: Path, name: str, bundle: Bundle, agents: int = 1) -> StoredReplay:
    factory = EnvFactory(name)
    uniform = record(factory, None, seed=SEED)
    write_replay(uniform, uniform, bundle, tmp_path, num_agents=agents)
    return read_json(tmp_path / REPLAY, StoredReplay, what="recorded episodes")


def test_empowerment_is_that_of_the_controller_at_the_same_time(tmp_path: Path):
    bundle = tracked()
    about = bundle.description
    assert (about.observation_size, about.action_size) == (2, 1)
    stored = written(tmp_path, "Dial-v0", bundle)
    episode = record(EnvFactory("Dial-v0"), None, seed=SEED).episode
    assert stored.random.columns[0] == list(range(41))
    memory, wanted = np.zeros(about.memory_size), []
    for row, action in zip(episode.observations, [*episode.actions, None], strict=True):
        _, memory = reference_step(bundle, row.astype(float), memory)
        wanted.append(reference_bound(bundle, row.astype(float), memory))
        if action is not None:
            memory[1 + about.latent_size :] = np.clip(action, *bundle.limits) - bundle.middle
    np.testing.assert_allclose(stored.random.empowerment or [], wanted, rtol=5e-5)
    assert np.ptp(wanted) > 1e-3


def test_of_several_agents_it_is_the_mean(tmp_path: Path):
    """An observation of two numbers is that of two agents of one each."""
    stored = written(tmp_path, "Two-v0", paying_bundle(1, low=-1.0), agents=2)
    pairs = zip(*stored.random.columns, strict=True)
    wanted = [np.mean([2 - 0.1 * min(abs(each), 1) * 2 for each in pair]) for pair in pairs]
    np.testing.assert_allclose(stored.random.empowerment or [], wanted, rtol=1e-4)


def test_films_have_the_frames(tmp_path: Path):
    stored = written(tmp_path, "Dial-v0", tracked())
    for actor in ("policy", "random"):
        frames, fps = read_video(film_of(tmp_path, actor))
        assert (len(frames), fps) == (stored.policy.num_frames, 25)
        brightness = frames.mean(axis=(1, 2, 3))
        np.testing.assert_allclose(brightness, 12 * np.arange(20), atol=8)
    assert stored.policy.ended


def test_without_a_bound_or_a_film_the_columns_remain(tmp_path: Path):
    bundle = tracked()
    about = bundle.description
    networks = {name: each for name, each in about.networks.items() if name != "bound"}
    arrays = {n: a for n, a in bundle.arrays.items() if not n.startswith("bound")}
    bare = Bundle(dataclasses.replace(about, networks=networks, bound_error=None), arrays)
    stored = written(tmp_path, "Blind-v0", bare)
    assert stored.random.empowerment is None
    assert stored.random.num_frames == 0
    assert "renders no frames" in stored.unfilmed
    assert len(stored.random.columns[1]) == 41
    assert not film_of(tmp_path, "policy").exists()
