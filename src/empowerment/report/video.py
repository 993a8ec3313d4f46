"""Films: frames to a file that every player can show, and back."""

import contextlib
import warnings
from collections.abc import Iterator
from pathlib import Path

import imageio.v3 as iio
import numpy as np
from jaxtyping import UInt8

_MULTIPLE = 16
"""Sizes of frames that every player can show."""


def write_film(
    frames: UInt8[np.ndarray, "frames height width 3"], path: Path, *, fps: float
) -> None:
    """Write frames to an MP4 file, cut to a size that every player can show.

    Args:
        frames: The pictures.
        path: The file.
        fps: Frames in a second.
    """
    high, wide = (side // _MULTIPLE * _MULTIPLE for side in frames.shape[1:3])
    top, left = (frames.shape[1] - high) // 2, (frames.shape[2] - wide) // 2
    with _ffmpeg():
        shown = frames[:, top : top + high, left : left + wide]
        iio.imwrite(path, shown, fps=fps, codec="h264", plugin="FFMPEG")


def read_film(path: Path) -> tuple[UInt8[np.ndarray, "frames height width 3"], float]:
    """Read the frames of a film, and how many there are in a second.

    Args:
        path: The file.
    """
    with _ffmpeg():
        about = iio.immeta(path, plugin="FFMPEG")
        return iio.imread(path, plugin="FFMPEG"), float(about["fps"])


@contextlib.contextmanager
def _ffmpeg() -> Iterator[None]:
    """Let ffmpeg be started and stopped without warnings.

    JAX warns of every fork, but this one touches nothing of JAX's; imageio leaves it to Python to
    close the pipes.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message=r"os\.fork\(\) was called", category=RuntimeWarning
        )
        warnings.filterwarnings("ignore", category=ResourceWarning)
        yield
