"""Fields of ROS 2 messages, against the serializer of the package that writes bags."""

from typing import Any

import numpy as np
import pytest
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from empowerment.data.readers.cdr import Field

STORE = get_typestore(Stores.ROS2_HUMBLE)
MINE = "mine/msg/Odd"
DEFINITION = """\
bool flag
string text
int16 small
float32[3] three
mine/Part[2] pair
mine/Part[] parts
uint8[] bytes
int64[] none
float64 last
================================================================================
MSG: mine/Part
string label
uint16 code
float64 value
"""
TYPES = get_types_from_msg(DEFINITION, MINE)


def odd(text: str, parts: int) -> Any:
    """A message whose fields are aligned differently for every text."""
    store = get_typestore(Stores.ROS2_HUMBLE)
    store.register(TYPES)
    part, kind = store.types["mine/msg/Part"], store.types[MINE]
    message = kind(
        flag=True,
        text=text,
        small=-5,
        three=np.array([1, 2, 3], np.float32),
        pair=[part(label=text, code=7, value=0.5), part(label="", code=8, value=-0.5)],
        parts=[part(label="a" * index, code=index, value=1.5 * index) for index in range(parts)],
        bytes=np.arange(parts, dtype=np.uint8),
        none=np.array([], np.int64),
        last=float(parts) + 0.25,
    )
    return store, message


@pytest.mark.parametrize("is_little", [True, False])
@pytest.mark.parametrize("length", range(9))
def test_fields_are_found_wherever_strings_push_them(length: int, *, is_little: bool):
    store, message = odd("x" * length, parts=length)
    raw = bytes(store.serialize_cdr(message, MINE, little_endian=is_little))
    wanted = {
        "flag": [True],
        "small": [-5],
        "three": [1, 2, 3],
        "three.1": [2],
        "bytes": list(range(length)),
        "none": [],
        "last": [length + 0.25],
    }
    for path, values in wanted.items():
        assert Field(TYPES, MINE, path.split("."))(raw) == values, path
    assert Field(TYPES, MINE, ["text"], text=True)(raw) == ["x" * length]


def test_numbers_of_messages_of_ros_and_their_names():
    types = STORE.types
    vector, quaternion = types["geometry_msgs/msg/Vector3"], types["geometry_msgs/msg/Quaternion"]
    header, stamp = types["std_msgs/msg/Header"], types["builtin_interfaces/msg/Time"]
    name = "sensor_msgs/msg/Imu"
    message = types[name](
        header=header(stamp(sec=1, nanosec=2), frame_id="imu"),
        orientation=quaternion(x=0.1, y=0.2, z=0.3, w=0.4),
        orientation_covariance=np.arange(9.0),
        angular_velocity=vector(x=1.0, y=2.0, z=3.0),
        angular_velocity_covariance=np.zeros(9),
        linear_acceleration=vector(x=4.0, y=5.0, z=6.0),
        linear_acceleration_covariance=np.zeros(9),
    )
    raw = bytes(STORE.serialize_cdr(message, name))
    definitions = STORE.fielddefs
    turning = Field(definitions, name, ["angular_velocity"])
    assert (turning(raw), turning.names) == ([1, 2, 3], ["x", "y", "z"])
    one = Field(definitions, name, ["linear_acceleration", "z"])
    assert (one(raw), one.names) == ([6], [""])
    eighth = Field(definitions, name, ["orientation_covariance", "8"])
    assert (eighth(raw), eighth.names) == ([8], [])


@pytest.mark.parametrize(
    ("path", "what"),
    [
        (["no"], "no no in it, but flag, text"),
        (["last", "x"], "no x in it"),
        (["text"], "something else in it than numbers"),
        (["parts"], "something else in it than numbers"),
        (["pair"], "something else in it than numbers"),
        ([], "something else in it than numbers"),
    ],
)
def test_what_is_not_numbers_is_refused(path: list[str], what: str):
    with pytest.raises(LookupError, match=what):
        Field(TYPES, MINE, path)


def test_types_that_contain_themselves_are_refused():
    types = get_types_from_msg("mine/Loop[] below\nfloat64 x", "mine/msg/Loop")
    with pytest.raises(LookupError, match="nested too deeply"):
        Field(types, "mine/msg/Loop", ["x"])


def test_damaged_messages_are_refused_and_never_read_past_the_end():
    store, message = odd("text", parts=3)
    raw = bytes(store.serialize_cdr(message, MINE))
    fields = [Field(TYPES, MINE, [name]) for name in ("three", "bytes", "last")]
    random = np.random.default_rng(0)
    broken = [raw[:cut] for cut in range(len(raw))]
    for _ in range(200):
        changed = bytearray(raw)
        changed[random.integers(len(raw))] = random.integers(256)
        broken.append(bytes(changed))
    complaints = set()
    for field in fields:
        for data in broken:
            try:
                assert len(field(data)) <= len(raw)
            except ValueError as error:
                complaints.add(str(error))
    assert complaints == {
        "a message in another encoding than plain CDR",
        "a message that is damaged or cut off",
    }
