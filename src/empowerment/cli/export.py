"""`empower export`; it starts without JAX."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from empowerment.cli.console import log
from empowerment.controller import Safety, read_bundle
from empowerment.controller.export import export
from empowerment.files import check_writable


@dataclasses.dataclass(frozen=True)
class ExportCommand:
    """Write a trained policy with its filter for other runtimes.

    The export is a step function from observation and state to action and next state. It is
    compared with the original on a thousand random steps before it is written. Of c, ros2 and wasm
    it has what watches over the controller, too: deadlines, a latched safe action, the monitor.

    Try `empower export runs/pendulum --format c --out pendulum.h`.
    """

    folder: Annotated[Positional[Path], arg(metavar="RUN")]
    """The run folder."""

    format: Literal["onnx", "c", "npz", "ros2", "wasm"]
    """onnx: a graph, for onnxruntime and others. c: two C99 headers without dependencies. npz:
    the weights by name, for NumPy. ros2: a package with a controller for ros2_control. wasm: the C
    as a WebAssembly module, by clang."""

    out: Annotated[Path, arg(metavar="FILE")]
    """The file; for c the header with the step function, the weights go beside it. For ros2 a new
    folder, named as the package."""

    rate: Annotated[float | None, arg(metavar="HZ")] = None
    """Of c, ros2 and wasm: the control rate, from which late cycles are told; by default that of
    the run."""

    safe_action: Annotated[str | None, arg(metavar="U,...")] = None
    """Of c, ros2 and wasm: the action after a fault; by default the admissible one closest to
    zero."""

    max_missing: int | None = None
    """Of c, ros2 and wasm: the number of consecutive missing observations that is a fault; 10 by
    default."""

    max_change: Annotated[float | None, arg(metavar="FLOAT")] = None
    """Of c, ros2 and wasm: the largest change of an action from one cycle to the next."""

    no_monitor: bool = False
    """Of c, ros2 and wasm: leave out the monitor of the model, which stops where observations
    are not what the model expects."""

    with_empowerment: bool = False
    """Export the empowerment of the state too, so that what runs the controller can log it."""

    json: bool = False
    """Print the figures as JSON to standard output."""

    debug: bool = False
    """Show the traceback of an error."""

    def run(self) -> None:
        """Export, and print how exact it is."""
        check_writable(self.out / "package.xml" if self.format == "ros2" else self.out)
        bundle = read_bundle(self.folder)
        safety = self._safety(bundle.description.interval)
        found, files = export(
            bundle, self.format, self.out, safety=safety, with_empowerment=self.with_empowerment
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
        if self.format == "onnx":
            parts = "deadlines, the latched safe action and the limit on changes"
            if bundle.description.monitor is not None:
                parts = (
                    "deadlines, the latched safe action, the limit on changes and the monitor of "
                )
                parts += "the model"
            log(f"The graph is the step alone: {parts} are left to the program that runs it.")
        if self.format == "ros2":
            log("Name the interfaces of your robot in config/controllers.yaml; README.md says how.")
            files = [self.out]
        log(f"The export is in {' and '.join(map(str, files))}.")

    def _safety(self, interval: float | None) -> Safety | None:
        """Return the fault limits of an export to C or from it; other formats have none."""
        given = [name for name in _OF_C if getattr(self, name) not in (None, False)]
        if self.format in ("onnx", "npz"):
            if given:
                name = given[0].replace("_", "-")
                raise ValueError(
                    f"Expected --{name} for the formats c, ros2 and wasm only; got {self.format}."
                )
            return None
        if self.rate is not None and not 0 < self.rate < math.inf:
            raise ValueError(f"Expected --rate to be positive and finite; got {self.rate}.")
        try:
            words = self.safe_action.split(",") if self.safe_action is not None else None
            action = None if words is None else tuple(map(float, words))
        except ValueError:
            raise ValueError(
                f"Expected --safe-action to be numbers between commas; got {self.safe_action!r}."
            ) from None
        most = Safety.max_missing if self.max_missing is None else self.max_missing
        return Safety(
            max_missing=most,
            safe_action=action,
            interval=1 / self.rate if self.rate else interval,
            max_change=self.max_change,
            monitor=not self.no_monitor,
        )


_OF_C = ("rate", "safe_action", "max_missing", "max_change", "no_monitor")
