"""Video files: frames to MP4 or GIF, and MP4 back to frames; imageio is imported when used."""

import contextlib
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

VIDEO = "episode.mp4"
"""Name of the video of an episode in a run folder."""

_MULTIPLE = 16
"""Frame sizes that every player supports are multiples of this."""


_FILM_WIDTH = 320
"""Pixels that a small film is at most wide."""


def write_video(
    frames: UInt8[np.ndarray, "frames height width 3"], path: Path, *, fps: float
) -> None:
    """Write frames to a GIF or MP4 file; MP4 is cropped to a size that every player supports."""
    import imageio.v3 as iio

    if path.suffix == ".gif":
        iio.imwrite(path, frames, plugin="pillow", duration=1000 / fps, loop=0)
        return
    high, wide = (side // _MULTIPLE * _MULTIPLE for side in frames.shape[1:3])
    top, left = (frames.shape[1] - high) // 2, (frames.shape[2] - wide) // 2
    with _ffmpeg():
        shown = frames[:, top : top + high, left : left + wide]
        iio.imwrite(path, shown, fps=fps, codec="h264", plugin="FFMPEG")


def write_film(
    frames: UInt8[np.ndarray, "frames height width 3"], path: Path, *, fps: float
) -> None:
    """Write frames to a small MP4 file in which a player finds any frame at once.

    Args:
        frames: The frames.
        path: The file.
        fps: Frames per second.
    """
    import imageio.v3 as iio

    # Players decode from the last whole frame on: here every eighth is one.
    width = min(frames.shape[2], _FILM_WIDTH) // 2 * 2
    options = ["-vf", f"scale={width}:-2", "-g", "8", "-crf", "30", "-movflags", "+faststart"]
    with _ffmpeg():
        iio.imwrite(
            path,
            frames,
            fps=fps,
            codec="h264",
            plugin="FFMPEG",
            quality=None,
            macro_block_size=1,
            output_params=options,
        )


def read_video(path: Path) -> tuple[UInt8[np.ndarray, "frames height width 3"], float]:
    """Read the frames of an MP4 file and its frames per second."""
    import imageio.v3 as iio

    with _ffmpeg():
        about = iio.immeta(path, plugin="FFMPEG")
        return iio.imread(path, plugin="FFMPEG"), float(about["fps"])


@contextlib.contextmanager
def _ffmpeg() -> Iterator[None]:
    """Suppress warnings when ffmpeg is started and stopped.

    JAX warns of every fork, but this one does not touch JAX; imageio leaves it to Python to
    close the pipes.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message=r"os\.fork\(\) was called", category=RuntimeWarning
        )
        warnings.filterwarnings("ignore", category=ResourceWarning)
        yield
