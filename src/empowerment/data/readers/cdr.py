"""Fields of ROS 2 messages in the Common Data Representation (OMG CORBA 3.0, 15.3).

Messages are decoded by their definitions as data. The library that reads bags would generate and
run code from the definitions in the file instead.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_CODES = {
    "bool": "?", "byte": "B", "octet": "B", "char": "B",
    "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I",
    "int64": "q", "uint64": "Q", "float32": "f", "float64": "d",
}  # fmt: skip
_SIZES = {kind: struct.calcsize(code) for kind, code in _CODES.items()}
_BASE, _NAME, _ARRAY, _SEQUENCE = 1, 2, 3, 4
_DEEPEST = 32

Types = Mapping[str, tuple[Any, Sequence[tuple[str, Any]]]]
"""Parsed definitions by type: constants, and the name and description of each field."""

Take = Callable[[bytes, int, str, list | None], int]
"""Reads a value at a position in an order of bytes, appends it if there is a list, and returns the
position after it."""


class Field:
    """Reads one field of messages of a type.

    Attributes:
        names: A name for each number, where the definition tells them.
        is_sequence: Whether messages may differ in the number of numbers.
    """

    def __init__(self, types: Types, kind: str, path: Sequence[str], *, text: bool = False):
        """Find the field.

        Args:
            types: The definitions.
            kind: The type of the messages.
            path: The names that lead to the field, and at last the number of an element, if so.
            text: Whether it is of strings rather than of numbers.

        Raises:
            LookupError: If there is no such field, or it has something else in it.
        """
        self._axis = int(path[-1]) if path and path[-1].isdecimal() else None
        names = path if self._axis is None else path[:-1]
        self._skips: list[Take] = []
        here: Any = (_NAME, kind)
        for name in names:
            fields = _fields(types, here[1])[0] if here[0] == _NAME else []
            found = [place for place, (field, _) in enumerate(fields) if field == name]
            if not found:
                has = ", ".join(field for field, _ in fields)
                raise LookupError(f"no {name} in it{f', but {has}' if has else ''}")
            self._skips += [_take(types, each, 0) for _, each in fields[: found[0]]]
            here = fields[found[0]][1]
        leaves = _leaves(types, here, 0)
        if any(is_text != text for _, is_text in leaves) or not leaves:
            raise LookupError(f"something else in it than {'strings' if text else 'numbers'}")
        self._read = _take(types, here, 0)
        self.is_sequence = here[0] == _SEQUENCE
        self.names = [name for name, _ in leaves]
        if self._axis is not None or self.is_sequence:
            self.names, self.is_sequence = [], self._axis is None

    def __call__(self, data: bytes) -> list:
        """Return what a message has in the field.

        Raises:
            ValueError: If it is damaged, or too short.
        """
        if len(data) < 4 or bytes(data[:2]) not in (b"\0\0", b"\0\1"):
            raise ValueError("a message in another encoding than plain CDR")
        data, order = data[4:], "<" if data[1] else ">"
        position = 0
        found: list = []
        try:
            for skip in self._skips:
                position = skip(data, position, order, None)
            self._read(data, position, order, found)
        except (struct.error, UnicodeDecodeError) as error:
            raise ValueError("a message that is damaged or cut off") from error
        if self._axis is None:
            return found
        if self._axis >= len(found):
            raise ValueError(f"a message with {len(found)} numbers and no number {self._axis}")
        return [found[self._axis]]


def _fields(types: Types, kind: str) -> tuple[Sequence[tuple[str, Any]], str]:
    if kind not in types:
        raise LookupError(f"no definition of the type {kind}")
    return types[kind][1], kind


def _leaves(types: Types, kind: Any, depth: int) -> list[tuple[str, bool]]:
    """Return the name of each value, and whether it is text; one for all of a sequence."""
    if depth > _DEEPEST:
        raise LookupError("types that are nested too deeply")
    if kind[0] == _BASE:
        if kind[1][0] not in _SIZES and kind[1][0] != "string":
            raise LookupError(f"the type {kind[1][0]}, which is not supported")
        return [("", kind[1][0] == "string")]
    if kind[0] == _NAME:
        return [
            (".".join(filter(None, (name, below))), is_text)
            for name, each in _fields(types, kind[1])[0]
            for below, is_text in _leaves(types, each, depth + 1)
        ]
    inner, count = kind[1]
    leaves = _leaves(types, inner, depth + 1)
    if kind[0] == _SEQUENCE:
        return leaves[:1] if inner[0] == _BASE else []
    return [
        (".".join(filter(None, (str(place), name))), is_text)
        for place in range(count)
        for name, is_text in leaves
    ]


def _take(types: Types, kind: Any, depth: int) -> Take:
    """Return what reads a value of a type."""
    if depth > _DEEPEST:
        raise LookupError("types that are nested too deeply")
    if kind[0] == _BASE:
        if kind[1][0] == "string":
            return _take_string
        return _take_numbers(kind[1][0], lambda data, position, order: (1, position))
    if kind[0] == _NAME:
        return _take_each([_take(types, each, depth + 1) for _, each in _fields(types, kind[1])[0]])
    inner, count = kind[1]

    def fixed(data: bytes, position: int, order: str) -> tuple[int, int]:
        return count, position

    size = fixed if kind[0] == _ARRAY else _count
    if inner[0] == _BASE and inner[1][0] in _SIZES:
        return _take_numbers(inner[1][0], size)
    take = _take(types, inner, depth + 1)

    def take_all(data: bytes, position: int, order: str, found: list | None) -> int:
        number, position = size(data, position, order)
        for _ in range(number):
            before, position = position, take(data, position, order, found)
            if position == before:
                break  # Of nothing there can be any number.
        return position

    return take_all


def _take_each(takes: Sequence[Take]) -> Take:
    def take(data: bytes, position: int, order: str, found: list | None) -> int:
        for each in takes:
            position = each(data, position, order, found)
        return position

    return take


def _take_numbers(kind: str, size: Callable[[bytes, int, str], tuple[int, int]]) -> Take:
    """Return what reads numbers, so many as `size` says."""
    if kind not in _SIZES:
        raise LookupError(f"the type {kind}, which is not supported")
    width, code = _SIZES[kind], _CODES[kind]

    def take(data: bytes, position: int, order: str, found: list | None) -> int:
        count, position = size(data, position, order)
        if not count:
            return position  # No padding before nothing.
        position += -position % width
        if position + count * width > len(data):
            raise struct.error
        if found is not None:
            found += struct.unpack_from(f"{order}{count}{code}", data, position)
        return position + count * width

    return take


def _count(data: bytes, position: int, order: str) -> tuple[int, int]:
    position += -position % 4
    return struct.unpack_from(f"{order}I", data, position)[0], position + 4


def _take_string(data: bytes, position: int, order: str, found: list | None) -> int:
    count, position = _count(data, position, order)
    if position + count > len(data):
        raise struct.error
    if found is not None:
        found.append(data[position : position + max(count - 1, 0)].decode())
    return position + count
