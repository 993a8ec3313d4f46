"""Errors that callers may want to tell apart, and what to install where a package is missing."""

_PACKAGES = {
    "train": "jax equinox optax matplotlib imageio",
    "box2d": "Box2D",
    "mujoco": "mujoco",
    "onnx": "onnx onnxruntime",
    "fast": "numba",
    "readers": "pyarrow minari rosbags h5py",
    "ray": "ray",
    "submitit": "submitit",
    "tensorboard": "tensorboardX",
    "dds": "cyclonedds",
}
EXTRAS = {package: extra for extra, names in _PACKAGES.items() for package in names.split()}
"""The extra of this package that installs each optional package."""


class EmpowermentError(RuntimeError):
    """A computation failed on valid inputs; wrong inputs raise a plain `ValueError`."""


class DivergedError(EmpowermentError):
    """Training diverged: a diagnostic is not finite, or beyond what is possible."""


class NotConvergedError(EmpowermentError):
    """An iteration did not reach its tolerance."""
