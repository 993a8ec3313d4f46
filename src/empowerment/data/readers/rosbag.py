"""Bags of ROS 2 (MCAP or SQLite), by the package rosbags; no ROS is needed."""

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, final

import numpy as np

from empowerment.data.archive import MAX_BYTES, check_size
from empowerment.data.clocks import Stream
from empowerment.data.readers.base import LogOptions, Signals, optional, refusing
from empowerment.data.readers.cdr import Field, Types
from empowerment.files import open_regular

_SUFFIXES = (".mcap", ".db3")
_NANO = 1e-9
_TEXT = "name"
"""The field that names the numbers of a message, as in sensor_msgs/msg/JointState."""


def is_rosbag(source: str) -> bool:
    """Return whether a folder has a bag in it."""
    folder = Path(source)
    return folder.is_dir() and (
        (folder / "metadata.yaml").is_file()
        or any(path.suffix in _SUFFIXES for path in folder.iterdir())
    )


def read_rosbag(source: str, options: LogOptions, *, max_bytes: int = MAX_BYTES) -> Signals:
    """Read fields of messages, such as `/joint_states.position`, at the times of their receipt."""
    path = Path(source)
    seen, done = options.names("observations"), options.names("actions")
    if not seen or not done:
        raise ValueError(
            "Expected fields of the messages of a bag to observe and to act by; got "
            f"{seen} and {done}. Name them by --observations and --actions, such as "
            "/joint_states.position."
        )
    if path.is_dir() and not (path / "metadata.yaml").is_file():
        path = _only_file(path)
    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
        open_regular(file).close()  # Neither a pipe nor a device, which could block.
    bags, typesys = optional("rosbags.rosbag2", path), optional("rosbags.typesys", path)
    words = list(dict.fromkeys([*seen, *done]))
    # A damaged bag can raise any error of its decoders.
    with refusing(path, "a bag of ROS 2", Exception), bags.Reader(path) as bag:
        columns = _columns(bag, words, typesys, path)
        topics = {each.connection.topic for each in columns.values()}
        wanted = [each for each in bag.connections if each.topic in topics]
        by_topic: dict[str, list[_Column]] = {}
        for each in columns.values():
            by_topic.setdefault(each.connection.topic, []).append(each)
        for connection, time, data in bag.messages(connections=wanted):
            for column in by_topic[connection.topic]:
                column.add(time, bytes(data))
                check_size(path, column.values.itemsize * len(column.values), max_bytes)
    start = min((each.times[0] for each in columns.values() if each.times), default=0)
    streams = {word: each.stream(start) for word, each in columns.items()}
    return Signals(
        [streams[word] for word in seen],
        [streams[word] for word in done],
        [name for word in seen for name in columns[word].names],
        [name for word in done for name in columns[word].names],
        {"file": path.name},
    )


def _only_file(folder: Path) -> Path:
    files = [path for path in sorted(folder.iterdir()) if path.suffix in _SUFFIXES]
    if len(files) != 1:
        raise ValueError(
            f"Expected {folder} to have a metadata.yaml or one file of messages; got {len(files)}."
        )
    return files[0]


def _columns(bag: Any, words: Sequence[str], typesys: Any, path: Path) -> "dict[str, _Column]":
    """Find the field that each word names."""
    columns = {}
    for word in words:
        topic, *names = word.split(".")
        found = [each for each in bag.connections if each.topic == topic]
        if not found:
            topics = ", ".join(sorted({each.topic for each in bag.connections}))
            raise ValueError(
                f"Expected {path} to have the topic {topic}; it has {topics[:200] or 'none'}."
            )
        if len({each.msgtype for each in found}) > 1:
            raise ValueError(f"Expected {topic} in {path} to have messages of one type; got more.")
        columns[word] = _Column(word, names, found[0], _types(found[0], typesys), path)
    return columns


def _types(connection: Any, typesys: Any) -> Types:
    """Return the definitions of a topic: those in the bag, or those that ROS comes with."""
    definition = connection.msgdef
    kind = definition.format.name
    if kind == "MSG":
        return typesys.get_types_from_msg(definition.data, connection.msgtype)
    if kind == "IDL":
        types: dict[str, Any] = {}
        for part in definition.data.split("=" * 80 + "\n"):
            _, _, text = part.partition("\n") if part.startswith("IDL: ") else ("", "", part)
            types |= typesys.get_types_from_idl(text) if text.strip() else {}
        return types
    return typesys.get_typestore(typesys.Stores.LATEST).fielddefs


@final
class _Column:
    """The numbers of one field, in all messages so far."""

    def __init__(self, word: str, names: Sequence[str], connection: Any, types: Types, path: Path):
        self.word, self.connection, self.path = word, connection, path
        kind = connection.msgtype
        try:
            self.field = Field(types, kind, names)
        except LookupError as error:
            raise ValueError(
                f"Expected {word} of {path} to be numbers in messages of the type {kind}; got "
                f"{str(error.args[0])[:300]}."
            ) from None
        self.labels: Field | None = None
        if self.field.is_sequence and len(names) == 1:
            try:
                self.labels = Field(types, kind, [_TEXT], text=True)
            except LookupError:
                self.labels = None
        self.times, self.values, self.width = array("q"), array("d"), 0
        self.raw: list[str] | None = None

    def add(self, time: int, data: bytes) -> None:
        """Append the numbers of a message."""
        try:
            values = self.field(data)
            labels = self.labels(data) if self.labels is not None else None
        except ValueError as error:
            raise self._refusal(f"got {error}") from error
        if not self.times:
            self.raw, self.width = labels, len(values)
        if len(values) != self.width:
            raise self._refusal(f"got {len(values)} numbers after {self.width}")
        if labels != self.raw:
            raise self._refusal(f"got the names {labels} after {self.raw}")
        self.times.append(time)
        self.values.extend(values)

    def _refusal(self, what: str) -> ValueError:
        return ValueError(
            f"Expected the messages of {self.word} in {self.path} to be alike; {what} in message "
            f"{len(self.times)}."
        )

    @property
    def names(self) -> list[str]:
        """A name for each number."""
        count, names = self.width, self.field.names
        if self.raw is not None and len(self.raw) == count == len(set(self.raw)):
            names = self.raw
        if count == 1 and names in ([], [""]):
            return [self.word]
        return [f"{self.word}.{name}" for name in names or map(str, range(count))]

    def stream(self, start: int) -> Stream:
        """Return the signal; its times begin at that of the bag, to keep their precision."""
        if not self.values:
            raise ValueError(f"Expected {self.word} in {self.path} to have numbers; got none.")
        # Times are whole nanoseconds since 1970, more than double precision holds.
        times = (np.frombuffer(self.times, np.int64) - start) * _NANO
        values = np.frombuffer(self.values, float).reshape(-1, self.width)
        return Stream(f"{self.word} in {self.path}", times, values)
