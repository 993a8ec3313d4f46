"""Data collection in Gymnasium environments with vector observations and actions."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import gymnasium

from empowerment.data.archive import MAX_BYTES
from empowerment.data.environments import (
    Maker,
    close_environment,
    describe_error,
    interval_of,
    make_environment,
    name_of,
    spaces_of,
)
from empowerment.data.episodes import Actor, Job, RandomActor
from empowerment.data.spaces import Spaces
from empowerment.data.trajectories import Trajectories
from empowerment.data.workers import EpisodeQueue, FailedEpisode, run_workers

EPISODE_LIMIT = 1000
"""Steps after which an episode is truncated, where the environment has no limit of its own."""

Progress = Callable[[str, int, int], None]
"""Progress callback: name of the activity, units done, units in total."""


@runtime_checkable
class Collect(Protocol):
    """Collects as `collect` does, by workers that were chosen before."""

    def __call__(
        self,
        environment: Maker,
        *,
        steps: int,
        seed: int,
        policy: Callable[[Spaces], Actor] = RandomActor,
    ) -> "tuple[Trajectories, Report]":
        """Collect transitions in an environment."""
        ...


@dataclass(frozen=True)
class Report:
    """Statistics of a collection.

    Attributes:
        num_episodes: The number of episodes in the data.
        num_transitions: The number of transitions in the data.
        failed: Episodes that failed and are not in the data.
        restarts: How often a dead or hung worker was restarted.
    """

    num_episodes: int
    num_transitions: int
    failed: tuple[FailedEpisode, ...]
    restarts: int

    def summary(self) -> str:
        """Summarise the collection in a few sentences."""
        text = f"Collected {self.num_transitions} transitions in {self.num_episodes} episodes."
        if self.failed:
            counts = Counter(each.why for each in self.failed)
            whys = ", ".join(f"{count} {why}" for why, count in sorted(counts.items()))
            text += (
                f" {len(self.failed)} episodes were dropped ({whys}; the last: "
                f"{self.failed[-1].detail})."
            )
        if self.restarts:
            text += f" Workers were restarted {self.restarts} times."
        return text


def collect(
    environment: Maker,
    *,
    steps: int,
    seed: int,
    policy: Callable[[Spaces], Actor] = RandomActor,
    workers: int = 0,
    cluster: str | None = None,
    timeout: float = 60.0,
    progress: Progress = lambda doing, done, total: None,
) -> tuple[Trajectories, Report]:
    """Collect transitions in an environment.

    The seeds of an episode are derived from `seed` and its index, and episodes are kept in the
    order of their indices; so the data are the same for any number of workers. An episode in
    which a worker dies twice or hangs, or the environment raises an error, is dropped and reported.

    Args:
        environment: A Gymnasium id (also `module:ID`), or a function that makes an environment.
        steps: The number of transitions; the last episode is cut to fit.
        seed: Random seed.
        policy: Builds the actor from the spaces; uniformly random actions by default.
        workers: The number of worker processes. With 0 it runs in this process, where a hung
            environment cannot be stopped. Scripts that use workers need
            `if __name__ == "__main__":`.
        cluster: Address of a Ray cluster whose cores are the workers, see
            `empowerment.cluster.connect`; by default they are processes of this machine.
        timeout: The seconds in one step or reset after which a worker counts as hung.
        progress: Progress callback.

    Returns:
        The data, and statistics of the collection.

    Raises:
        ValueError: If the environment cannot be made, its spaces are not vectors of numbers, or
            most of its episodes fail.
    """
    for what, value, least in (("steps", steps, 1), ("seed", seed, 0), ("workers", workers, 0)):
        if value < least:
            raise ValueError(f"Expected {what} to be at least {least}; got {value}.")
    if not timeout > 0:
        raise ValueError(f"Expected timeout to be positive; got {timeout}.")
    probe, name = make_environment(environment), name_of(environment)
    spaces, spec, interval = spaces_of(probe, name), probe.spec, interval_of(probe)
    size = 4 * steps * (len(spaces.observation_names) + len(spaces.action_names) + 1)
    if size > MAX_BYTES:
        raise ValueError(f"Expected the data to have at most {MAX_BYTES} bytes; got {size}.")
    own_limit = spec.max_episode_steps if spec is not None else None
    limit = min(own_limit or EPISODE_LIMIT, steps)
    # A spec can be sent to workers in which the id is not registered.
    maker = spec if isinstance(environment, str) and spec is not None else environment
    job, queue = Job(maker, policy, spaces, seed, limit), EpisodeQueue(steps)

    def show(done: int) -> None:
        progress("collecting", min(done, steps), steps)

    if workers == 0:
        _run_here(job, probe, queue, show)
    elif cluster is not None:
        from empowerment.data.ray_workers import run_on_ray

        close_environment(probe)
        run_on_ray(job, queue, address=cluster, workers=workers, timeout=timeout, show=show)
    else:
        close_environment(probe)
        run_workers(job, queue, workers=workers, timeout=timeout, show=show)
    show(steps)
    report = Report(len(queue.episodes), queue.total, tuple(queue.failed), queue.restarts)
    about = {
        "environment": name,
        "seed": seed,
        "interval": interval,
        "policy": getattr(policy, "__qualname__", str(policy)).lower(),
        "episodes_lost": len(report.failed),
    }
    return Trajectories(tuple(queue.episodes), spaces, about), report


def _run_here(
    job: Job, environment: gymnasium.Env, queue: EpisodeQueue, show: Callable[[int], None]
) -> None:
    """Run episodes in this process until there are enough transitions."""
    actor = job.policy(job.spaces)
    try:
        while not queue.is_complete:
            index, before = queue.take_index(), queue.num_received
            try:
                episode = job.run(
                    environment,
                    actor,
                    index=index,
                    heartbeat=lambda steps, before=before: show(before + steps),
                )
            except (Exception, SystemExit) as error:  # as in a worker
                queue.add(index, FailedEpisode(index, "failed", describe_error(error)))
                environment, actor = job.make()
            else:
                queue.add(index, episode)
                show(queue.num_received)
    finally:
        close_environment(environment)
