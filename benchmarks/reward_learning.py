"""Learn by PPO of Stable-Baselines3 from rewards with and without empowerment.

Started by `python -m benchmarks.reward learn`, in an environment of its own. The pendulum is paid
by empowerment alone. Elsewhere the environment's own reward stands alone, or has empowerment added
as a bonus or as shaping, or the novelty of random network distillation. One line of JSON per run:
environment steps until the mean return of the last 20 episodes reaches the threshold (none if it
never does), and crashes until then or the end.
"""

import argparse
import json
import runpy
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch  # pyright: ignore[reportMissingImports]
from stable_baselines3 import PPO  # pyright: ignore[reportMissingImports]
from stable_baselines3.common.callbacks import BaseCallback  # pyright: ignore[reportMissingImports]
from stable_baselines3.common.env_checker import check_env  # pyright: ignore[reportMissingImports]
from stable_baselines3.common.env_util import make_vec_env  # pyright: ignore[reportMissingImports]

from empowerment.controller.pay import Spread
from empowerment.controller.reward import EmpowermentReward

_EXAMPLE = Path(__file__).parent.parent / "examples" / "sb3_reward.py"
_RESULTS = Path("results/reward/learning.jsonl")
_RECENT = 20
REWARDS = ("own", "bonus", "shaping", "novelty")
PENDULUM = "Pendulum-v1"


@dataclass(frozen=True)
class Task:
    """An environment, when it is solved, what a crash is, and how much the added reward counts.

    Attributes:
        threshold: Mean return from which it counts as solved.
        steps: Most environment steps.
        gamma: Discount, of the learner and of shaping.
        weight: What an added reward of unit spread is worth; for shaping, what a nat is.
        crash: Largest last reward of a termination that is a crash.
        is_late: Whether the return is paid at the end of an episode, all at once.
        settings: Further settings of PPO.
    """

    threshold: float
    steps: int
    gamma: float = 0.99
    weight: float = 0.1
    crash: float = -np.inf
    is_late: bool = False
    settings: dict[str, Any] = field(default_factory=dict)


TASKS = {
    "CartPole-v1": Task(475.0, 200_000, weight=1.0, crash=np.inf, is_late=True),
    "MountainCarContinuous-v0": Task(90.0, 300_000, 0.999, settings={"use_sde": True}),
    "LunarLanderContinuous-v3": Task(200.0, 500_000, 0.999, crash=-100.0),
}


class Ledger(gymnasium.Wrapper):
    """Notes returns and crashes of an environment as it is; pays at the end if the task says so."""

    def __init__(self, env: gymnasium.Env, task: Task, book: "Book"):
        super().__init__(env)
        self.task, self.book, self.total = task, book, 0.0

    def reset(self, **options: Any) -> Any:
        """Begin an episode."""
        self.total = 0.0
        return self.env.reset(**options)

    def step(self, action: Any) -> Any:
        """Make a step, and note its reward."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.total += float(reward)
        is_over = terminated or truncated
        if is_over:
            self.book.returns.append(self.total)
            self.book.crashes += terminated and float(reward) <= self.task.crash
        if self.task.is_late:
            reward = self.total if is_over else 0.0
        return observation, reward, terminated, truncated, info


@dataclass
class Book:
    """Returns of the latest episodes, and the number of crashes so far."""

    returns: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT))
    crashes: int = 0


class Novelty(gymnasium.Wrapper):
    """Random network distillation (Burda et al., 2019): pays the error of predicting a network."""

    def __init__(self, env: gymnasium.Env, weight: float, gamma: float, batch: int = 64):
        super().__init__(env)
        space = env.observation_space
        assert space.shape is not None
        self.weight, self.batch, self.kept = weight, batch, []
        self.target, self.predictor = (self._network(space.shape[0]) for _ in range(2))
        self.optimiser = torch.optim.Adam(self.predictor.parameters(), lr=1e-3)
        self.spread = Spread(1, gamma)
        self.count, self.mean, self.square = 1e-4, np.zeros(space.shape), np.ones(space.shape)

    @staticmethod
    def _network(size: int) -> Any:
        linear, relu = torch.nn.Linear, torch.nn.ReLU
        return torch.nn.Sequential(linear(size, 64), relu(), linear(64, 64), relu(), linear(64, 32))

    def step(self, action: Any) -> Any:
        """Make a step, and pay for what is new to the predictor."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        seen = self._normalise(np.asarray(observation, float))
        with torch.no_grad():
            error = float(((self.predictor(seen) - self.target(seen)) ** 2).mean())
        self.spread.update(np.array([error]))
        self.kept.append(seen)
        if len(self.kept) == self.batch:
            batch, self.kept = torch.stack(self.kept), []
            loss = ((self.predictor(batch) - self.target(batch).detach()) ** 2).mean()
            self.optimiser.zero_grad()
            loss.backward()
            self.optimiser.step()
        paid = float(reward) + self.weight * error / self.spread.variance**0.5
        return observation, paid, terminated, truncated, info

    def _normalise(self, observation: np.ndarray) -> Any:
        self.count += 1
        change = observation - self.mean
        self.mean = self.mean + change / self.count
        self.square = self.square + (change * (observation - self.mean) - self.square) / self.count
        scaled = (observation - self.mean) / np.sqrt(self.square + 1e-8)
        return torch.as_tensor(np.clip(scaled, -5, 5), dtype=torch.float32)


class Stop(BaseCallback):
    """Stops when a task is solved."""

    def __init__(self, task: Task, book: Book):
        super().__init__()
        self.task, self.book = task, book

    def _on_step(self) -> bool:
        returns = self.book.returns
        return len(returns) < _RECENT or bool(np.mean(returns) < self.task.threshold)


def make(name: str, reward: str, source: Any, book: Book) -> gymnasium.Env:
    """Make the environment of a task with one of the rewards."""
    task = TASKS[name]
    env = Ledger(gymnasium.make(name), task, book)
    if reward == "bonus":
        normal = {"normalise": "variance", "gamma": task.gamma}
        return EmpowermentReward(env, source, weight=task.weight, **normal)
    if reward == "shaping":
        return EmpowermentReward(env, source, weight=task.weight, shaping=True, gamma=task.gamma)
    return Novelty(env, task.weight, task.gamma) if reward == "novelty" else env


def learn(name: str, reward: str, source: Any, seed: int, steps: int | None) -> dict[str, Any]:
    """Train until the task is solved or the steps are spent."""
    torch.manual_seed(seed)
    task, book = TASKS[name], Book()
    envs = make_vec_env(lambda: make(name, reward, source, book), n_envs=4, seed=seed)
    settings = {"gamma": task.gamma, "seed": seed, "device": "cpu", **task.settings}
    model = PPO("MlpPolicy", envs, n_steps=512, **settings)
    model.learn(steps or task.steps, callback=Stop(task, book))
    recent = float(np.mean(book.returns)) if book.returns else None
    is_solved = recent is not None and len(book.returns) == _RECENT and recent >= task.threshold
    return {
        "task": name + (", paid at the end" if task.is_late else ""),
        "reward": reward,
        "seed": seed,
        "steps to threshold": model.num_timesteps if is_solved else None,
        "steps": model.num_timesteps,
        "crashes": book.crashes,
        "last return": recent,
    }


def swing_up(source: Any, seed: int, steps: int | None) -> dict[str, Any]:
    """Train the example on empowerment alone."""
    example = runpy.run_path(str(_EXAMPLE))
    env = example["make"](source)
    check_env(env)  # Its warnings, if any, are shown: that torques go up to 2 and not 1.
    spent = steps or 100_000
    share = example["upright"](example["train"](source, spent, seed))
    about = {"task": PENDULUM, "reward": "empowerment alone", "seed": seed, "steps": spent}
    return {**about, "upright in the last 5 s": round(share, 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", nargs="+", required=True, metavar="ID=SOURCE")
    parser.add_argument("--rewards", nargs="+", choices=REWARDS, default=REWARDS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--steps", type=int, help="fewer environment steps, to try it out")
    options = parser.parse_args()
    torch.set_num_threads(1)
    _RESULTS.parent.mkdir(parents=True, exist_ok=True)
    for given in options.sources:
        name, _, source = given.partition("=")
        for reward in ("alone",) if name == PENDULUM else options.rewards:
            for seed in options.seeds:
                begun = time.monotonic()
                if name == PENDULUM:
                    found = swing_up(source, seed, options.steps)
                else:
                    found = learn(name, reward, source, seed, options.steps)
                found["minutes"] = round((time.monotonic() - begun) / 60, 1)
                print(json.dumps(found), flush=True)
                with _RESULTS.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
