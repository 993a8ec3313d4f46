"""The package for ros2_control, compiled and run against a stand-in for ros2_control."""

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from controllers_for_tests import discrete_bundle, filter_bundle, pendulum_bundle, watched_bundle
from safety_corpus import CORPUS, SPREAD, WATCHED, Spell, expected_faults

from empowerment.cli import main
from empowerment.controller import Bundle, Controller, Safety, write_bundle
from empowerment.controller.export import export
from empowerment.controller.export.c_code import c_files
from empowerment.controller.export.ros2_package import package_files

STUB = Path(__file__).parent / "ros2_stub"
FLAGS = (
    "-std=c++17", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wconversion",
    "-Wsign-conversion", "-Wdouble-promotion", "-Wshadow", "-Wundef",
)  # fmt: skip
INCLUDED = (
    "controller_interface/controller_interface.hpp",
    "pluginlib/class_list_macros.hpp",
    "rclcpp/rclcpp.hpp",
    "rclcpp_lifecycle/state.hpp",
)
SETUP = "rate 100\nparameter state_interfaces {}\nparameter command_interfaces {}\nconfigure\n"

Build = Callable[..., Path]


@pytest.fixture(scope="module")
def manager(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What stands for the manager, compiled with both kinds of interfaces."""
    folder = tmp_path_factory.mktemp("manager")
    for file in INCLUDED:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(f'#include "{STUB / "controller_interface.hpp"}"\n')
    objects = {}
    for kind in ("old", "new"):
        objects[kind] = folder / f"{kind}.o"
        flags = ["-DNEW_INTERFACES"] * (kind == "new")
        command = ["c++", "-std=c++17", *flags, "-c", "-o", objects[kind], STUB / "manager.cpp"]
        subprocess.run(command, check=True)
    return objects


@pytest.fixture
def build(manager: dict[str, Path], tmp_path: Path) -> Build:
    """Build the plugin of a controller with what stands for the manager."""

    def built(bundle: Bundle, safety: Safety, kind: str = "new") -> Path:
        package = package_files(bundle, "arm", c_files(bundle, "arm", safety), safety)
        for file, text in package.items():
            (tmp_path / "arm" / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "arm" / file).write_text(text)
        program = tmp_path / "program"
        flags = ["-DNEW_INTERFACES"] * (kind == "new")
        includes = ["-I", tmp_path / "arm" / "include", "-I", manager[kind].parent]
        source = tmp_path / "arm" / "src" / "controller.cpp"
        subprocess.run(
            ["c++", *FLAGS, *flags, *includes, "-o", program, source, manager[kind]], check=True
        )
        return program

    return built


def say(program: Path, bundle: Bundle, lines: Sequence[str], rate: int = 100) -> tuple[Any, str]:
    """Configure the plugin, and send it lines; return what it answers and what it logs."""
    about = bundle.description
    names = [f"joint_{i}/position" for i in range(about.observation_size)]
    commands = [f"joint_{i}/effort" for i in range(about.action_size)]
    setup = SETUP.replace("100", str(rate)).format(" ".join(names), " ".join(commands))
    given = setup + "\n".join(lines) + "\n"
    said = subprocess.run([program], input=given, capture_output=True, text=True, check=True)
    return said.stdout.splitlines(), said.stderr


def update(period: int, observation: np.ndarray | None, size: int) -> str:
    values = np.full(size, np.nan) if observation is None else observation
    return f"update {period} " + " ".join(f"{value:.17g}" for value in values)


def follow(program: Path, bundle: Bundle, safety: Safety, spell: Spell) -> None:
    """Give a spell to the plugin and to the controller in Python, and compare the actions."""
    size, now = bundle.description.observation_size, 0
    interval = safety.interval or 0.01
    controller = Controller(bundle, safety=safety, engine="numpy", clock=lambda: now)
    lines, expected, faults = ["activate"], [], []
    for index, (gap, observation) in enumerate(spell.cycles(size)):
        if index in spell.resets:
            controller.reset()
            lines += ["deactivate", "activate"]
        period = round(gap * 1e9 * interval)
        now += period
        lines.append(update(period, observation, size))
        expected.append(controller.step(observation))
        faults.append(controller.fault)
    answers, _ = say(program, bundle, lines, rate=round(1 / interval))
    assert set(answers) - {"success"} == {each for each in answers if each.startswith("ok ")}
    found = [each.split()[1:] for each in answers if each.startswith("ok ")]
    np.testing.assert_allclose(np.array(found, float), expected, rtol=1e-5, atol=1e-5)
    assert [fault is None for fault in faults] == [each is None for each in expected_faults(spell)]


@pytest.mark.parametrize(
    ("bundle", "name"),
    [
        (filter_bundle(), "late and missing"),
        (discrete_bundle((3, 2), latent=4), "a reset"),
        (watched_bundle(SPREAD), "a reset, and settling again"),
    ],
    ids=["filter", "choices", "watched"],
)
def test_the_plugin_acts_as_the_controller_does(bundle: Bundle, name: str, build: Build):
    spell = (CORPUS | WATCHED)[name]
    safety = Safety(**spell.safety)
    follow(build(bundle, safety), bundle, safety, spell)


def test_interfaces_of_earlier_releases_are_taken(build: Build):
    bundle, spell = filter_bundle(), CORPUS["holes"]
    safety = Safety(**spell.safety)
    follow(build(bundle, safety, "old"), bundle, safety, spell)


def test_a_fast_manager_holds_actions_and_a_slow_one_is_late(build: Build, random: Any):
    bundle = pendulum_bundle()
    safety = Safety(interval=0.01, max_late=3, safe_action=[0.5])
    program = build(bundle, safety)
    rows = random.normal(size=(60, 2)).astype(np.float32)
    lines = [update(1_000_000, row, 2) for row in rows]
    answers, _ = say(program, bundle, ["activate", *lines], rate=1000)
    controller = Controller(bundle, safety=Safety(safe_action=[0.5]), engine="numpy")
    # A step is taken at the first update, and then every tenth; the others hold its action.
    steps = np.array([controller.step(row) for row in rows[::10]]).repeat(10, axis=0)
    found = np.array([answer.split()[1:] for answer in answers[2:]], float)
    np.testing.assert_allclose(found, steps, rtol=1e-5, atol=1e-5)
    slow = [update(30_000_000, row, 2) for row in rows[:3]]
    answers, logged = say(program, bundle, ["activate", *slow, "timer", "timer"])
    assert answers[-1] == "ok 0.5"
    assert logged.strip() == "The safe action is latched: consecutive cycles were missed."


def test_the_safe_action_is_applied_before_after_and_upon_a_fault(build: Build):
    bundle = watched_bundle(SPREAD)
    program = build(bundle, Safety(safe_action=[-1.0, 0.5], max_missing=4))
    good, shifted = np.zeros(3), np.array([0.0, 2.0, 0.0])
    lines = ["activate", update(0, None, 3), *[update(10**7, good, 3)] * 12]
    lines += [*[update(10**7, shifted, 3)] * 6, "timer", "deactivate", "activate"]
    lines += [update(10**7, None, 3), update(10**7, np.array([1e300, 0.0, 0.0]), 3)]
    lines += ["refuse 1", *[update(10**7, good, 3)] * 5, "deactivate"]
    answers, logged = say(program, bundle, lines)
    assert answers[:3] == ["success", "success", "ok -1 0.5"]
    assert answers[20] == "ok -1 0.5"
    assert "observations are not what the model expects, above all observation 1." in logged
    assert logged.count("latched") == 1
    # After the reset, missing observations hold the safe action; then nothing can be written.
    assert answers[21:25] == ["success", "success", "ok -1 0.5", "ok -1 0.5"]
    assert [each.split()[0] for each in answers[25:]] == ["ok"] * 3 + ["error"] * 2 + ["no"]


def test_parameters_that_cannot_be_are_refused(build: Build):
    bundle = pendulum_bundle()
    program = build(bundle, Safety(interval=0.05))
    lines = ["rate 50", "configure", "rate 30", "configure", "rate 0", "configure", "rate 100"]
    lines += ["configure", "parameter command_interfaces a/b c/d", "configure"]
    answers, logged = say(program, bundle, lines, rate=20)
    assert answers == ["success", "no", "no", "success", "success", "no"]
    assert "a multiple of 20 Hz, the rate of the policy; got 30 Hz" in logged
    assert "Expected 2 state_interfaces and 1 command_interfaces; got 2 and 2." in logged


def test_the_command_writes_a_package(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    write_bundle(watched_bundle(SPREAD), tmp_path / "run")
    words = ["export", str(tmp_path / "run"), "--format", "ros2", "--out", str(tmp_path / "arm")]
    main([*words, "--rate", "12.5", "--max-missing", "7"])
    assert "Name the interfaces of your robot" in capsys.readouterr().err
    files = sorted(str(f.relative_to(tmp_path / "arm")) for f in (tmp_path / "arm").rglob("*.*"))
    assert files == [
        "CMakeLists.txt",
        "README.md",
        "arm_plugin.xml",
        "config/controllers.yaml",
        "include/arm/arm.h",
        "include/arm/arm_weights.h",
        "package.xml",
        "src/controller.cpp",
    ]
    texts = {file: (tmp_path / "arm" / file).read_text() for file in files}
    assert not any("@" in text.replace("you@example.org", "") for text in texts.values())
    package = ElementTree.fromstring(texts["package.xml"])
    plugin = ElementTree.fromstring(texts["arm_plugin.xml"])
    assert package.findtext("name") == plugin.get("path") == "arm"
    kind = plugin.find("class")
    assert kind is not None
    assert f"PLUGINLIB_EXPORT_CLASS(\n  {kind.get('type')}" in texts["src/controller.cpp"]
    assert "update_rate: 25  # Hz; a multiple of 12.5 Hz" in texts["config/controllers.yaml"]
    assert f"type: {kind.get('name')}\n" in texts["config/controllers.yaml"]
    assert "- CHANGE_ME_2/position  # observation 2" in texts["config/controllers.yaml"]
    assert "7 consecutive missing observations" in texts["README.md"]
    # It is not written over, and the header alone can be renewed as it says.
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2
    assert "Expected a new or empty folder for a package" in capsys.readouterr().err
    header = tmp_path / "arm" / "include" / "arm" / "arm.h"
    main([*words[:2], "--format", "c", "--out", str(header), "--rate", "12.5", "--max-missing=7"])
    assert header.read_text() == texts["include/arm/arm.h"]


@pytest.mark.parametrize("name", ["Arm", "left-arm", "a__b", "1arm", "a", "arm.h"])
def test_names_that_no_package_has_are_refused(name: str, tmp_path: Path):
    with pytest.raises(ValueError, match="Expected the f"):
        export(pendulum_bundle(), "ros2", tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_names_cannot_leave_their_strings():
    bundle = pendulum_bundle()
    hostile = {"observation_names": ('"; int x; //', "\\\n@NAME@"), "action_names": ("a\nb: c",)}
    about = type(bundle.description)(**{**vars(bundle.description), **hostile})
    files = package_files(Bundle(about, bundle.arrays), "arm", {}, Safety())
    assert '{"_; int x; //", "___NAME_"}' in files["src/controller.cpp"]
    assert "CHANGE_ME_0/effort  # a b: c" in files["config/controllers.yaml"]
