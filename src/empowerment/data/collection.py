"""Data from any Gymnasium environment with vectors of numbers."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import gymnasium

from empowerment.data.archive import MAX_BYTES
from empowerment.data.environments import Maker, interval_of, make_environment, name_of, spaces_of
from empowerment.data.episodes import Actor, Job, RandomActor, run_episode
from empowerment.data.spaces import Spaces
from empowerment.data.trajectories import Trajectories
from empowerment.data.workers import EpisodeQueue, FailedEpisode, describe_error, run_workers

EPISODE_LIMIT = 1000
"""Steps after which an episode is cut, where the environment itself sets no limit."""

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is."""


@dataclass(frozen=True)
class Report:
    """How a collection went.

    Attributes:
        num_episodes: Those in the data.
        num_transitions: Those in the data.
        failed: Episodes that are not in the data, since they did not come to their end.
        restarts: Workers that died or hung and were replaced.
    """

    num_episodes: int
    num_transitions: int
    failed: tuple[FailedEpisode, ...]
    restarts: int

    def summary(self) -> str:
        """Say it in a sentence or two."""
        said = f"Collected {self.num_transitions} transitions in {self.num_episodes} episodes."
        if self.failed:
            counts = Counter(each.why for each in self.failed)
            whys = ", ".join(f"{count} {why}" for why, count in sorted(counts.items()))
            said += (
                f" {len(self.failed)} episodes were dropped ({whys}; the last: "
                f"{self.failed[-1].detail})."
            )
        if self.restarts:
            said += f" Workers were restarted {self.restarts} times."
        return said


def collect(
    environment: Maker,
    *,
    steps: int,
    seed: int,
    policy: Callable[[Spaces], Actor] = RandomActor,
    workers: int = 0,
    timeout: float = 60.0,
    progress: Progress = lambda doing, done, total: None,
) -> tuple[Trajectories, Report]:
    """Act in an environment and keep what is seen and done.

    Every episode has its own seed, made of `seed` and its number, and episodes are taken in the
    order of their numbers; so the data are the same for any number of workers. An episode that
    does not come to its end, since a worker dies or hangs or the environment raises an error, is
    dropped and reported.

    Args:
        environment: A Gymnasium id (also `module:ID`), or a function that makes one.
        steps: How many transitions; the last episode is cut to fit.
        seed: Of everything random.
        policy: Makes who acts, from the spaces; at random by default.
        workers: Processes to run it in. With 0 it runs in this one, where what hangs cannot
            be helped. Scripts that use workers need `if __name__ == "__main__":`.
        timeout: After so many seconds in one step or reset, a worker counts as hung.
        progress: Told how far it is.

    Returns:
        The data, and how it went.

    Raises:
        ValueError: If the environment cannot be made, has other spaces than vectors of numbers,
            or does not finish its episodes.
    """
    for what, value, least in (("steps", steps, 1), ("seed", seed, 0), ("workers", workers, 0)):
        if value < least:
            raise ValueError(f"Expected {what} to be at least {least}; got {value}.")
    if not timeout > 0:
        raise ValueError(f"Expected timeout to be positive; got {timeout}.")
    probe, name = make_environment(environment), name_of(environment)
    spaces, spec, interval = spaces_of(probe, name), probe.spec, interval_of(probe)
    size = 4 * steps * (len(spaces.observation_names) + len(spaces.action_names))
    if size > MAX_BYTES:
        raise ValueError(f"Expected the data to have at most {MAX_BYTES} bytes; got {size}.")
    own_limit = spec.max_episode_steps if spec is not None else None
    limit = min(own_limit or EPISODE_LIMIT, steps)
    # A spec can be sent to workers that do not know the id.
    maker = spec if isinstance(environment, str) and spec is not None else environment
    job, queue = Job(maker, policy, spaces, seed, limit), EpisodeQueue(steps)

    def show(done: int) -> None:
        progress("collecting", min(done, steps), steps)

    if workers == 0:
        _run_here(job, probe, queue, show)
    else:
        probe.close()
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
    """Run episodes in this process until there are enough."""
    actor = job.policy(job.spaces)
    try:
        while not queue.is_whole:
            index, before = queue.take_index(), queue.found
            try:
                episode = run_episode(
                    job,
                    environment,
                    actor,
                    index=index,
                    beat=lambda steps, before=before: show(before + steps),
                )
            except Exception as error:  # as a worker would
                queue.add(index, FailedEpisode(index, "failed", describe_error(error)))
                environment, actor = job.make()
            else:
                queue.add(index, episode)
                show(queue.found)
    finally:
        environment.close()
