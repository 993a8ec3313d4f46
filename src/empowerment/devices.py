"""Data-parallel training: the batch of an update is spread over devices."""

import contextlib
from collections.abc import Iterator
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, PartitionSpec

_AXIS = "batch"

_T = TypeVar("_T")


def check_devices(count: int) -> None:
    """Raise a `ValueError` if there are not so many devices."""
    if count == 1 == jax.process_count():
        return
    found, processes = jax.local_devices(), jax.process_count()
    if count % processes:
        raise ValueError(
            f"Expected a number of devices that {processes} processes can share evenly; got "
            f"{count}. Choose it by --devices."
        )
    if count // processes > len(found):
        raise ValueError(
            f"Expected {count // processes} devices; this machine has {len(found)} "
            f"({found[0].platform}). Cores count as devices by "
            "XLA_FLAGS=--xla_force_host_platform_device_count=N."
        )


@contextlib.contextmanager
def use_devices(count: int) -> Iterator[None]:
    """Spread batches over the first devices of each process; parameters are on each of them."""
    check_devices(count)
    if count == 1:
        yield
        return
    processes = jax.process_count()
    devices = [
        device
        for process in range(processes)
        for device in [d for d in jax.devices() if d.process_index == process][: count // processes]
    ]
    mesh = jax.make_mesh((count,), (_AXIS,), axis_types=(AxisType.Auto,), devices=devices)
    with jax.set_mesh(mesh):
        yield


def gathered(tree: _T) -> _T:
    """Return what was computed on the devices of several processes as arrays of this one.

    Each process has all of it. What is computed from it later concerns no other process, so this is
    called where no devices are in use.
    """
    if jax.process_count() == 1:
        return tree
    arrays, rest = eqx.partition(tree, eqx.is_array)
    return eqx.combine(jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)), arrays), rest)


def shard(batch: _T) -> _T:
    """Spread the first axis of all arrays of a batch over the devices in use.

    What is computed from it follows, and the compiler adds up gradients over devices: values and
    gradients are those of one device but for the order of sums.

    Raises:
        ValueError: If it cannot be divided evenly.
    """
    mesh = jax.sharding.get_abstract_mesh()
    if mesh.empty:
        return batch

    def place(leaf: jax.Array) -> jax.Array:
        if len(leaf) % mesh.size:
            raise ValueError(
                f"Expected batches that {mesh.size} devices can share evenly; got one of "
                f"{len(leaf)}. Choose another number of devices, or batch."
            )
        return jax.lax.with_sharding_constraint(leaf, PartitionSpec(_AXIS))

    return jax.tree.map(place, batch)
