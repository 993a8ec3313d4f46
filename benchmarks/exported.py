"""Count the instructions and bytes of controllers in C: those of a step do not depend on the load.

Needs a C compiler, `size`, and valgrind, whose callgrind counts the instructions of programs that
make so many steps and twice as many: the difference is that of the steps.

    python -m benchmarks.exported
"""

import re
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.controller_steps import subject
from benchmarks.tables import Table, write_table
from empowerment.controller import Bundle, Safety
from empowerment.controller.description import MonitorLimits
from empowerment.controller.export.c_code import c_files
from empowerment.controller.export.c_compiled import FLAGS
from empowerment.controller.network_arrays import add_network
from empowerment.gallery.exhibits import find_exhibit

_STEPS = 200
_RATE = 20.0
PROGRAM = """\
#include <stdlib.h>
#include "it.h"

static it_controller it;
static float rows[64][IT_OBSERVATION_SIZE], action[IT_ACTION_SIZE];

void control(const float *observation, uint64_t now);

void control(const float *observation, uint64_t now) {
  (void)it_control(&it, observation, now, action);
}

int main(int count, char **words) {
  const int steps = atoi(words[1]), is_missing = count > 2;
  int i, j;
  for (i = 0; i < 64; i++)
    for (j = 0; j < IT_OBSERVATION_SIZE; j++)
      rows[i][j] = (float)((i * 31 + j * 17) % 41 - 20) * 0.01f;
  it_init(&it);
  control(rows[0], 0);
  for (i = 1; i <= steps; i++)
    control(is_missing ? NULL : rows[i % 64], (uint64_t)i * IT_INTERVAL);
  return it.fault == IT_NO_FAULT ? 0 : 1;
}
"""
"""Makes steps with changing observations, or without any after the first; a fault is an error."""


def watched() -> tuple[Bundle, Bundle]:
    """Build the controller that observes 44 numbers, without a monitor and with one."""
    _, _, model, bundle = subject()
    networks, arrays = {}, {}
    add_network(networks, arrays, "decoder", model.decoder)
    # An observation is never unfamiliar, but always judged.
    limits = MonitorLimits(24.9, 1e-4, 1000, 25.0, 0.1, 3, 10)
    about = bundle.description
    about = replace(about, networks={**about.networks, **networks}, monitor=limits)
    spread = {"innovations.scale": np.full(about.observation_size, 100.0)}
    single = {name: np.asarray(array, np.float32) for name, array in (arrays | spread).items()}
    return bundle, Bundle(about, {**bundle.arrays, **single})


def build(bundle: Bundle, folder: Path) -> Path:
    """Compile a controller into a program that makes steps."""
    safety = Safety(interval=1 / _RATE, max_missing=1 << 30)
    for file, text in {**c_files(bundle, "it", safety), "main.c": PROGRAM}.items():
        (folder / file).write_text(text)
    command = ["cc", *FLAGS, "-c", "-o", "main.o", "main.c"]
    subprocess.run(command, cwd=folder, check=True)
    subprocess.run(["cc", "-o", "program", "main.o", "-lm"], cwd=folder, check=True)
    return folder / "program"


def measure_sizes(program: Path) -> tuple[int, int, int]:
    """Return the bytes of the state, of code, and of constants."""
    command = ["size", "-A", program.with_name("main.o")]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    sections = re.findall(r"^(\.\S+)\s+(\d+)", said, re.MULTILINE)

    def total(prefix: str) -> int:
        return sum(int(size) for name, size in sections if name.startswith(prefix))

    (program.parent / "state.c").write_text(
        '#include <stdio.h>\n#include "it.h"\n'
        'int main(void) { printf("%zu", sizeof(it_controller)); return 0; }\n'
    )
    subprocess.run(["cc", "-o", "state", "state.c", "-lm"], cwd=program.parent, check=True)
    said = subprocess.run([program.parent / "state"], capture_output=True, text=True, check=True)
    return int(said.stdout), total(".text"), total(".rodata")


def count_instructions(program: Path, *, is_missing: bool = False) -> int:
    """Return the mean number of instructions of a step, by callgrind."""

    def count(steps: int) -> int:
        words = [program, str(steps), *["missing"] * is_missing]
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *words]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
        found = re.search(r"Collected : (\d+)", said)
        assert found is not None
        return int(found[1])

    return (count(2 * _STEPS) - count(_STEPS)) // _STEPS


def main() -> None:
    """Write the table."""
    for tool in ("cc", "size", "valgrind"):
        if shutil.which(tool) is None:
            raise SystemExit(f"Expected {tool} to be installed; got none.")
    plain, monitored = watched()
    subjects = {
        "pendulum of the gallery": find_exhibit("pendulum").bundle.without_bound(),
        "44 numbers observed": plain,
        "the same with a monitor": monitored,
    }
    rows: Table = []
    for name, bundle in subjects.items():
        with tempfile.TemporaryDirectory() as folder:
            program = build(bundle, Path(folder))
            state, code, constants = measure_sizes(program)
            rows.append(
                {
                    "controller": name,
                    "state, bytes": state,
                    "code, bytes": code,
                    "constants, bytes": constants,
                    "instructions per step": count_instructions(program),
                    "without an observation": count_instructions(program, is_missing=True),
                }
            )
    write_table("controller-exported", rows)


if __name__ == "__main__":
    main()
