"""Export to a package of ros2_control: the C headers in a controller plugin."""

import re
from collections.abc import Sequence
from pathlib import Path

from empowerment.controller.bundle import Bundle
from empowerment.controller.choices import labels
from empowerment.controller.export.c_code import comment, filled
from empowerment.controller.safety import Safety, safe_action

_TEMPLATES = Path(__file__).parent / "ros2"
_FILES = {
    "CMakeLists.txt": "CMakeLists.txt",
    "README.md": "README.md",
    "config/controllers.yaml": "controllers.yaml",
    "package.xml": "package.xml",
    "src/controller.cpp": "controller.cpp",
}
"""Templates, by the files of the package that they become."""

_MOST_MULTIPLE = 100
_NEAR = 0.01


def check_package(folder: Path) -> None:
    """Refuse a folder whose name cannot be that of a package, or that has content."""
    if not re.fullmatch(r"[a-z](_?[a-z0-9])+", folder.name):
        raise ValueError(
            "Expected the folder to be named as a package (lower-case letters, digits and single "
            f"underscores); got {folder.name!r}."
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(
            f"Expected a new or empty folder for a package; got {folder}. To renew its controller "
            f"only, export with --format c to {folder / 'include' / folder.name / folder.name}.h."
        )


def package_files(
    bundle: Bundle, name: str, code: dict[str, str], safety: Safety
) -> dict[str, str]:
    """Generate the package.

    Args:
        bundle: The controller bundle.
        name: Name of the package, and prefix of every symbol in C.
        code: The headers, see `c_files`.
        safety: Fault limits.

    Returns:
        The text of each file, by its path in the package.
    """
    about = bundle.description
    is_watched = safety.monitor and about.monitor is not None
    faults = ""
    if safety.interval is not None:
        faults += (
            f"; {safety.max_late} consecutive missed cycles; more than "
            f"{int(safety.late_share * safety.window)} missed cycles of {safety.window}"
        )
    if is_watched:
        faults += "; observations that the model does not expect"
    actions = labels(about.action_names, about.choices)
    words = {
        "NAME": name,
        "UPPER": name.upper(),
        "OBSERVATION_STRINGS": ", ".join(map(_literal, about.observation_names)),
        "OBSERVATION_NAMES": comment(about.observation_names),
        "ACTION_NAMES": comment(actions),
        "STATES": _interfaces(about.observation_names, "position"),
        "COMMANDS": _interfaces(actions, "effort"),
        "SAFE": ", ".join(f"{value:.6g}" for value in safe_action(safety, bundle).tolist()),
        "MAX_MISSING": safety.max_missing,
        "FAULTS": faults,
        "AXIS": _AXIS if is_watched else "",
        **_rate_words(safety.interval),
    }
    texts = {path: (_TEMPLATES / template).read_text() for path, template in _FILES.items()}
    texts[f"{name}_plugin.xml"] = (_TEMPLATES / "plugin.xml").read_text()
    package = {path: filled(text, words) for path, text in texts.items()}
    return {f"include/{name}/{file}": text for file, text in code.items()} | package


_AXIS = "    axis_.store(controller_.unfamiliar_axis, std::memory_order_relaxed);\n"


def _rate_words(interval: float | None) -> dict[str, object]:
    """Return what the files say of the rate."""
    if interval is None:
        return {
            "RATE": 100,
            "RATE_RULE": "each update is a step of the policy",
            "RATE_SENTENCE": (
                "Each update is a step of the policy: set the update rate of the manager to that "
                "of training. Late cycles are no fault, since the rate was not known at the export."
            ),
        }
    hertz = 1 / interval
    # An update rate is a whole number.
    multiples = (round(count * hertz) for count in range(1, _MOST_MULTIPLE))
    near = (
        rate
        for count, rate in enumerate(multiples, 1)
        if rate and abs(count * hertz / rate - 1) <= _NEAR
    )
    return {
        "RATE": next(near, max(round(hertz), 1)),
        "RATE_RULE": f"a multiple of {hertz:.6g} Hz, the rate of the policy",
        "RATE_SENTENCE": (
            f"The policy steps at {hertz:.6g} Hz. The update rate of the manager has to be a "
            "multiple of it; the action is held in between."
        ),
    }


def _interfaces(names: Sequence[str], kind: str) -> str:
    """Generate a list of interfaces that are to be named, with what each is for."""
    return "\n".join(
        f"      - CHANGE_ME_{index}/{kind}  # {comment([name])}" for index, name in enumerate(names)
    )


def _literal(name: str) -> str:
    """Generate a string literal of C++, of the letters that need no care."""
    return '"' + re.sub(r"[^A-Za-z0-9 _.,:;()\[\]+*/<>=-]", "_", name)[:100] + '"'
