"""Data-parallel training: the batch of an update is spread over devices."""

import contextlib
from collections.abc import Iterator
from typing import TypeVar

import jax
from jax.sharding import AxisType, PartitionSpec

_AXIS = "batch"

_T = TypeVar("_T")


def check_devices(count: int) -> None:
    """Raise a `ValueError` if there are not so many devices."""
    if count == 1:
        return
    found = jax.devices()
    if count > len(found):
        raise ValueError(
            f"Expected {count} devices; this machine has {len(found)} ({found[0].platform}). Cores "
            "count as devices by XLA_FLAGS=--xla_force_host_platform_device_count=N."
        )


@contextlib.contextmanager
def use_devices(count: int) -> Iterator[None]:
    """Spread batches over the first devices; parameters are on each of them."""
    check_devices(count)
    if count == 1:
        yield
        return
    devices = jax.devices()[:count]
    mesh = jax.make_mesh((count,), (_AXIS,), axis_types=(AxisType.Auto,), devices=devices)
    with jax.set_mesh(mesh):
        yield


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
