import functools
import json
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from empowerment.channel import Codebook, make_channel
from empowerment.storage import load_tree, read_about, save_tree
from empowerment.worlds import Bounded, Pendulum

WORLD = Bounded(Pendulum())


@functools.cache
def make(seed: int, width: int = 8) -> Codebook:
    key = jax.random.key(seed)
    channel = make_channel(WORLD, family="codebook", steps=2, width=width, key=key)
    assert isinstance(channel, Codebook)
    return channel


def test_round_trip_is_the_identity(tmp_path: Path):
    channel, path = make(0), tmp_path / "kept" / "channel.safetensors"
    save_tree(channel, path, about={"world": "pendulum", "steps": 2})
    assert eqx.tree_equal(load_tree(make(1), path), channel)
    assert read_about(path) == {"world": "pendulum", "steps": 2}
    assert sorted(file.name for file in path.parent.iterdir()) == [
        "channel.json",
        "channel.safetensors",
    ]


def test_flipped_bit_is_refused(tmp_path: Path):
    path = tmp_path / "channel.safetensors"
    save_tree(make(0), path, about={})
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(ValueError, match="SHA-256 differs"):
        load_tree(make(1), path)


def test_weights_that_are_not_finite_are_refused(tmp_path: Path):
    path, channel = tmp_path / "channel.safetensors", make(0)
    broken = eqx.tree_at(lambda c: c.intents, channel, jnp.nan * channel.intents)
    save_tree(broken, path, about={})
    with pytest.raises(ValueError, match=r"to be finite; \.intents is not"):
        load_tree(make(1), path)


def test_other_sizes_are_refused(tmp_path: Path):
    path = tmp_path / "channel.safetensors"
    save_tree(make(0), path, about={})
    with pytest.raises(ValueError, match="family and sizes"):
        load_tree(make(1, width=9), path)


@pytest.mark.parametrize("text", ["{", json.dumps({"format": "other"}), "[]"])
def test_other_manifests_are_refused(tmp_path: Path, text: str):
    path = tmp_path / "channel.safetensors"
    save_tree(make(0), path, about={})
    path.with_suffix(".json").write_text(text)
    with pytest.raises(ValueError, match=r"to be (a|the) manifest"):
        load_tree(make(1), path)
