"""`empower export`; it starts without JAX."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from empowerment.cli.console import log
from empowerment.controller import read_bundle
from empowerment.controller.export import export
from empowerment.files import check_writable


@dataclasses.dataclass(frozen=True)
class ExportCommand:
    """Write a trained policy with its filter for other runtimes.

    The export is a step function from observation and state to action and next state. It is
    compared with the original on a thousand random steps before it is written.

    Try `empower export runs/pendulum --format c --out pendulum.h`.
    """

    folder: Annotated[Positional[Path], arg(metavar="RUN")]
    """The run folder."""

    format: Literal["onnx", "c", "npz"]
    """onnx: a graph, for onnxruntime and others. c: two C99 headers without dependencies. npz:
    the weights by name, for NumPy."""

    out: Annotated[Path, arg(metavar="FILE")]
    """The file; for C the header with the step function, the weights go beside it."""

    with_empowerment: bool = False
    """Export the empowerment of the state too, so that what runs the controller can log it."""

    json: bool = False
    """Print the figures as JSON to standard output."""

    debug: bool = False
    """Show the traceback of an error."""

    def run(self) -> None:
        """Export, and print how exact it is."""
        check_writable(self.out)
        found, files = export(
            read_bundle(self.folder),
            self.format,
            self.out,
            with_empowerment=self.with_empowerment,
        )
        if self.json:
            names = [str(file) for file in files]
            print(json.dumps({**dataclasses.asdict(found), "files": names}, indent=2))
            return
        log(
            f"Largest error {found.largest_error:.2g} in {found.num_steps} random steps; a step "
            f"takes {1e6 * found.p50:.1f} µs (p50), {1e6 * found.p99:.1f} (p99)."
        )
        if found.num_undecided:
            log(
                f"At {found.num_undecided} steps two choices are equally good up to rounding; "
                "their actions were not compared."
            )
        log(f"The export is in {' and '.join(map(str, files))}.")
