"""Recording of what a controller does with a device, as data to learn from."""

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from empowerment.controller.bundle import Description
from empowerment.controller.devices import RemoteDevice
from empowerment.data.clocks import Stream, resample
from empowerment.data.spaces import Spaces, free_spaces
from empowerment.data.trajectories import Episode, Trajectories

EPISODE_LIMIT = 1000
"""Transitions after which an episode is cut in the file; control goes on."""

_GAP = 3.5
"""Cycles from one observation to the next that cut an episode."""


def spaces_of_bundle(about: Description) -> Spaces:
    """Return the spaces of the data that a controller records."""
    names = about.observation_names, about.action_names
    spaces = free_spaces(*names, action_low=about.low, action_high=about.high)
    return replace(spaces, action_choices=about.choices)


@dataclass
class _Open:
    """The episode that is being recorded: cycles, and what was seen and done in them."""

    seen_at: list[int] = field(default_factory=list)
    seen: list[np.ndarray] = field(default_factory=list)
    done_at: list[int] = field(default_factory=list)
    done: list[np.ndarray] = field(default_factory=list)


class RecordingDevice:
    """A device that records what is read from it and written to it, episode by episode.

    Whenever an episode is finished, all of them are written to the file, atomically and in a
    thread of its own: a process that is killed loses no more than the open episode. Where up to two
    observations in a row are missing they are on the line between their neighbours, as where a log
    is resampled; a longer silence cuts the episode.

    Args:
        device: The device.
        path: The file.
        spaces: Bounds and names.
        about: Metadata of the data.
        interval: Seconds between cycles.
        written: Callback with the number of transitions in the file, from the thread that writes.

    Attributes:
        num_transitions: Transitions that are in finished episodes.
        num_episodes: Finished episodes.
        problem: The error upon the last write, if any.
    """

    def __init__(
        self,
        device: RemoteDevice,
        path: Path,
        spaces: Spaces,
        *,
        about: dict[str, Any],
        interval: float,
        written: Callable[[int], None] = lambda count: None,
    ):
        self._device, self._path, self._spaces = device, path, spaces
        self._written = written
        self._about = {"environment": None, **about, "interval": interval}
        self._period, self._start = round(1e9 * interval), time.monotonic_ns()
        self._episodes: list[Episode] = []
        self._open = _Open()
        self._episode_number = device.num_episodes
        self._cycle = 0
        self._jobs: queue.SimpleQueue[Trajectories | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write_all)
        self._writer.start()
        self.num_transitions = self.num_episodes = 0
        self.problem: OSError | None = None

    @property
    def is_idle(self) -> bool:
        """Whether the device is between two episodes."""
        return self._device.is_idle

    @property
    def num_recorded(self) -> int:
        """Number of transitions so far, those between observations of the open episode included."""
        return self.num_transitions + max(len(self._open.seen) - 1, 0)

    def read(self) -> Any:
        """Read from the device, and record it; a device that is lost ends the episode."""
        try:
            seen = self._device.read()
        except Exception:
            self._finish(terminated=False)
            raise
        if self._device.num_episodes != self._episode_number:  # It began without an end before.
            self._finish(terminated=False)
            self._episode_number = self._device.num_episodes
        self._cycle = self._next_cycle()
        if seen is not None and (not self._device.is_idle or self._device.ended):
            numbers = np.asarray(seen, np.float32)
            if np.isfinite(numbers).all():
                self._open.seen_at.append(self._cycle)
                self._open.seen.append(numbers)
        if self._device.ended is not None:
            self._finish(terminated=self._device.ended == "terminated")
        return seen

    def write(self, action: Float[np.ndarray, " action"]) -> None:
        """Write to the device, and record it."""
        self._device.write(action)
        if self._device.is_idle or self._open.done_at[-1:] == [self._cycle]:
            return  # The last action of all comes in no cycle of its own.
        self._open.done_at.append(self._cycle)
        self._open.done.append(np.array(action, np.float32))
        if len(self._open.done) > EPISODE_LIMIT:
            last = self._open
            self._finish(terminated=False)  # Both have the row at the cut.
            if last.seen_at and last.seen_at[-1] == self._cycle:  # Where the next one begins.
                self._open.seen_at, self._open.seen = last.seen_at[-1:], last.seen[-1:]
            self._open.done_at, self._open.done = last.done_at[-1:], last.done[-1:]

    def close(self) -> None:
        """Finish the open episode, and wait until everything is written."""
        self._finish(terminated=False)
        self._jobs.put(None)
        self._writer.join()

    def _next_cycle(self) -> int:
        """Return the number of this cycle; those that were missed count, but in lock-step."""
        if self._device.is_lockstep:
            return self._cycle + 1
        elapsed = time.monotonic_ns() - self._start
        return max((elapsed + self._period // 2) // self._period, self._cycle + 1)

    def _finish(self, *, terminated: bool) -> None:
        """Let the open episode end, and hand everything to the writer."""
        ended, self._open = self._open, _Open()
        if len(ended.seen) < 2 or not ended.done:
            return
        times = [np.array(at, float) for at in (ended.seen_at, ended.done_at)]
        pieces, _ = resample(
            [Stream("observations", times[0], np.stack(ended.seen))],
            [Stream("actions", times[1], np.stack(ended.done))],
            rate=1.0,
            gap=_GAP,
            ends=terminated,
        )
        for piece in pieces:
            is_end = terminated and piece.reaches_end
            self._episodes.append(
                Episode(piece.observations, piece.actions, terminated=is_end, truncated=not is_end)
            )
        self.num_episodes = len(self._episodes)
        self.num_transitions = sum(each.length for each in self._episodes)
        if self._episodes:
            self._jobs.put(Trajectories(tuple(self._episodes), self._spaces, self._about))

    def _write_all(self) -> None:
        """Write the newest data, again and again; what is superseded is left out."""
        while (data := self._jobs.get()) is not None:
            is_last = False
            while not self._jobs.empty():
                newer = self._jobs.get()
                if newer is None:
                    is_last = True
                    break
                data = newer
            try:
                data.save(self._path)
                self.problem = None
                self._written(data.num_transitions)
            except OSError as error:
                self.problem = error
            if is_last:
                return
