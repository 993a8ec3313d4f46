import json
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import pytest

from empowerment.channel import Codebook, make_channel
from empowerment.storage import load_tree, read_about, save_tree
from empowerment.worlds import Bounded, Pendulum

WORLD = Bounded(Pendulum())


def make(key, width: int = 8) -> Codebook:
    channel = make_channel(WORLD, family="codebook", steps=2, width=width, key=key)
    assert isinstance(channel, Codebook)
    return channel


def test_round_trip_is_the_identity(tmp_path: Path, getkey):
    channel, path = make(getkey()), tmp_path / "kept" / "channel.safetensors"
    save_tree(channel, path, about={"world": "pendulum", "steps": 2})
    assert eqx.tree_equal(load_tree(make(getkey()), path), channel)
    assert read_about(path) == {"world": "pendulum", "steps": 2}
    assert sorted(file.name for file in path.parent.iterdir()) == [
        "channel.json",
        "channel.safetensors",
    ]


def test_flipped_bit_is_refused(tmp_path: Path, getkey):
    path = tmp_path / "channel.safetensors"
    save_tree(make(getkey()), path, about={})
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(ValueError, match="SHA-256 differs"):
        load_tree(make(getkey()), path)


def test_weights_that_are_not_finite_are_refused(tmp_path: Path, getkey):
    path, channel = tmp_path / "channel.safetensors", make(getkey())
    broken = eqx.tree_at(lambda c: c.intents, channel, jnp.nan * channel.intents)
    save_tree(broken, path, about={})
    with pytest.raises(ValueError, match=r"to be finite; \.intents is not"):
        load_tree(make(getkey()), path)


def test_other_sizes_are_refused(tmp_path: Path, getkey):
    path = tmp_path / "channel.safetensors"
    save_tree(make(getkey()), path, about={})
    with pytest.raises(ValueError, match="family and sizes"):
        load_tree(make(getkey(), width=9), path)


@pytest.mark.parametrize("text", ["{", json.dumps({"format": "other"}), "[]"])
def test_other_manifests_are_refused(tmp_path: Path, getkey, text: str):
    path = tmp_path / "channel.safetensors"
    save_tree(make(getkey()), path, about={})
    path.with_suffix(".json").write_text(text)
    with pytest.raises(ValueError, match=r"to be (a|the) manifest"):
        load_tree(make(getkey()), path)
