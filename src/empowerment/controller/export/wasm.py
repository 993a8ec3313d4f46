"""Export to WebAssembly: the generated C, compiled by clang to a module without imports."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from empowerment.controller.export.c_code import filled

_COMPILERS = ("clang", *(f"clang-{version}" for version in range(24, 10, -1)))
_FLAGS = (
    "--target=wasm32-wasi", "-msimd128", "-std=c99", "-O3", "-Wall", "-Wextra", "-Werror",
    "-nostartfiles", "-Wl,--no-entry", "-Wl,--strip-all", "-Wl,-z,stack-size=131072",
)  # fmt: skip
_NEEDED = "clang, lld, wasi-libc and libclang-rt-dev-wasm32 (names of Debian's packages)"
_IMPORTS = 2
"""Number of the section of a module that lists what it imports."""

SOURCE = """\
#include "@NAME@.h"

#ifdef __wasm__
#define EXPORT(name) __attribute__((export_name(name)))
#else
#define EXPORT(name)
#endif

static @NAME@_controller it;
static float observed[@UPPER@_OBSERVATION_SIZE], applied[@UPPER@_ACTION_SIZE];
static uint64_t latest;

EXPORT("observation") float *wasm_observation(void);
EXPORT("action") float *wasm_action(void);
EXPORT("state") float *wasm_state(void);
EXPORT("observation_size") int wasm_observation_size(void);
EXPORT("action_size") int wasm_action_size(void);
EXPORT("state_size") int wasm_state_size(void);
EXPORT("init") void wasm_init(void);
EXPORT("reset") void wasm_reset(void);
EXPORT("control") int wasm_control(int is_seen, double milliseconds);
EXPORT("count") double wasm_count(int kind);

float *wasm_observation(void) { return observed; }
float *wasm_action(void) { return applied; }
float *wasm_state(void) { return it.state; }
int wasm_observation_size(void) { return @UPPER@_OBSERVATION_SIZE; }
int wasm_action_size(void) { return @UPPER@_ACTION_SIZE; }
int wasm_state_size(void) { return @UPPER@_STATE_SIZE; }

void wasm_init(void) {
  latest = 0;
  memcpy(applied, @NAME@_safe, sizeof applied);
  @NAME@_init(&it);
}

void wasm_reset(void) { @NAME@_reset(&it); }

/* A time that is none is that of the last call. */
int wasm_control(int is_seen, double milliseconds) {
  if (milliseconds >= 0.0 && milliseconds < 1e12) latest = (uint64_t)(milliseconds * 1e6 + 0.5);
  return @NAME@_control(&it, is_seen ? observed : NULL, latest, applied);
}

/* Steps, missing observations, missed cycles and faults. */
double wasm_count(int kind) {
  const uint64_t counts[4] = {it.num_steps, it.num_missing, it.num_late, it.num_faults};
  return kind >= 0 && kind < 4 ? (double)counts[kind] : 0.0;
}
"""
"""What a module has beside its memory."""

WATCHED = """
EXPORT("levels") float *wasm_levels(void);
EXPORT("unfamiliar_axis") int wasm_unfamiliar_axis(void);

float *wasm_levels(void) { return it.levels; }
int wasm_unfamiliar_axis(void) { return it.unfamiliar_axis; }
"""
"""And with a monitor."""

EMPOWERED = """
EXPORT("empowerment") float wasm_empowerment(void);

float wasm_empowerment(void) { return @NAME@_empowerment(observed, it.state); }
"""
"""And with the bound on empowerment, of the observation that is there."""


def wasm_source(name: str, code: str) -> str:
    """Generate the functions of a module.

    Args:
        name: Prefix of every symbol in the header.
        code: The header, see `c_files`.
    """
    text = SOURCE + WATCHED * (f"{name}_is_unfamiliar" in code)
    text += EMPOWERED * (f"{name}_empowerment" in code)
    return filled(text, {"NAME": name, "UPPER": name.upper()})


def find_clang() -> str:
    """Return the path of clang.

    Raises:
        ValueError: If it is not installed.
    """
    found = next(filter(None, map(shutil.which, _COMPILERS)), None)
    if found is None:
        raise ValueError(
            f"Expected clang with the target wasm32 to be installed; got none. Install {_NEEDED}."
        )
    return found


def compile_wasm(texts: Mapping[str, str], name: str) -> bytes:
    """Compile the headers and the functions around them to a module without imports.

    Args:
        texts: The headers, see `c_files`.
        name: Prefix of every symbol in them.

    Raises:
        ValueError: If there is no compiler with that target, or the module would import something.
    """
    compiler = find_clang()
    with tempfile.TemporaryDirectory() as folder:
        source, module = Path(folder) / "module.c", Path(folder) / "module.wasm"
        for file, text in {**texts, source.name: wasm_source(name, texts[f"{name}.h"])}.items():
            (Path(folder) / file).write_text(text)
        command = [compiler, *_FLAGS, "-o", module, source, "-lm"]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode or not module.exists():
            first = (result.stderr.strip().splitlines() or ["no message"])[0]
            raise ValueError(
                f"Expected clang to compile for the target wasm32; {compiler} reports: "
                f"{first[:200]}. Install {_NEEDED}."
            )
        data = module.read_bytes()
    if _IMPORTS in dict(_sections(data)):
        raise ValueError("Expected the module to import nothing; it does. Nothing was written.")
    return data


def _sections(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Split a module into its sections, by their kinds."""
    if data[:8] != b"\0asm\x01\0\0\0":
        raise ValueError("Expected clang to write a module of WebAssembly; got something else.")
    place = 8
    while place < len(data):
        kind, place = data[place], place + 1
        size = shift = 0
        while True:  # A number of variable length, seven bits by byte.
            byte, place = data[place], place + 1
            size |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        yield kind, data[place : place + size]
        place += size
