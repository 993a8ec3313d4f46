"""The pages of reports in a real browser: `make browser-test`, which needs Chromium.

It is not among the tests of `make test`, which need no browser. It trains a pendulum, unless
EMPOWERMENT_RUN names a run of the preset `pendulum` with a report, and it fails without a browser.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect, sync_playwright  # pyright: ignore[reportMissingImports]
from tests.report.test_replay import episode, replay
from tests.report.test_report_page import page_of

from empowerment.cli import main
from empowerment.controller import read_bundle
from empowerment.controller.reference import reference_step
from empowerment.report import Metrics, Training, write_watch

WIDTHS = (360, 768, 1280)
NAMES = ("chromium", "chromium-browser", "google-chrome")
HANGING, SIDEWAYS = (0.02, -1.0), (1.0, -0.3)
"""Where the bob is dragged to, in lengths of the pendulum to the right and up."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if "EMPOWERMENT_RUN" in os.environ:
        return Path(os.environ["EMPOWERMENT_RUN"]).resolve()
    folder = tmp_path_factory.mktemp("runs") / "pendulum"
    main(["train", "pendulum", "--out", str(folder)])
    main(["report", str(folder), "--grid", "9x9"])
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = next(filter(None, map(shutil.which, NAMES)), None)
    assert path is not None, f"Expected one of {', '.join(NAMES)} to be installed; got none."
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


class Page:
    """The page of a run from disk; every request but that for itself is recorded and aborted."""

    def __init__(
        self,
        browser: Any,
        run: Path,
        *,
        name: str = "report.html",
        ready: str = "#live canvas",
        **about: Any,
    ):
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.context = browser.new_context(**about)
        self.page = self.context.new_page()
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        address = (run / name).resolve().as_uri()

        def answer(route: Any) -> None:
            if route.request.url.partition("#")[0] == address:
                route.continue_()
            else:
                self.requests.append(route.request.url)
                route.abort()

        self.page.route("**/*", answer)
        self.page.goto(address)
        self.page.wait_for_selector(ready)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.page, name)

    def live(self, expression: str, data: Any = None) -> Any:
        """Return what an expression of `live`, `policy`, `random` and `data` is."""
        program = (
            "(data) => { const live = document.getElementById('live').live; "
            f"const [policy, random] = live.simulation.actors; return {expression}; }}"
        )
        return self.page.evaluate(program, data)

    def replay(self, expression: str) -> Any:
        """Return what an expression of `replay` is."""
        program = (
            f"() => {{ const {{ replay }} = document.getElementById('replay'); {expression} }}"
        )
        return self.page.evaluate(program)

    def close(self) -> None:
        """Close the page, of which nothing was to be complained about."""
        assert self.requests == []
        assert self.complaints == []
        self.context.close()

    def bob(self, name: str, place: tuple[float, float]) -> tuple[float, float]:
        """Return where a place of a system is on the screen."""
        box = self.page.locator(f"[data-live={name}]").bounding_box()
        scale = min(box["width"], box["height"]) / 3
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        return x + scale * place[0], y - scale * place[1]


def keep_picture(page: Page, name: str) -> None:
    """Keep a picture of a page where EMPOWERMENT_SCREENSHOTS says so."""
    shots = os.environ.get("EMPOWERMENT_SCREENSHOTS")
    if shots:
        page.screenshot(path=f"{shots}/{name}.png", full_page=True)


@pytest.fixture
def page(browser: Any, run: Path) -> Iterator[Page]:
    """A page at rest, so that only what a test does happens."""
    opened = Page(browser, run, reduced_motion="reduce", viewport={"width": 1280, "height": 900})
    opened.locator("#live").scroll_into_view_if_needed()
    yield opened
    opened.close()


def test_actions_are_those_of_the_controller(page: Page, run: Path):
    bundle = read_bundle(run)
    rows = np.random.default_rng(0).uniform([-3.2, -8], [3.2, 8], (1000, 2))
    found = page.live(
        "data.map((row) => makeController(JSON.parse(document.getElementById('live-data')"
        ".textContent).bundle).step(row, [0, 0]).action)",
        rows.tolist(),
    )
    memory = np.zeros(bundle.description.memory_size)
    wanted = [reference_step(bundle, row, memory)[0] for row in rows]
    assert np.abs(np.array(found) - wanted).max() < 1e-5


@pytest.mark.parametrize("place", [HANGING, SIDEWAYS], ids=["hanging", "sideways"])
def test_a_dragged_pendulum_is_upright_again_within_three_seconds(
    page: Page, place: tuple[float, float]
):
    page.live("live.advance(100)")
    assert abs(page.live("wrapped(policy.state[0])")) < 0.3
    page.mouse.move(*page.bob("policy", (0, 1)))
    page.mouse.down()
    page.mouse.move(*page.bob("policy", place), steps=4)
    assert page.live("policy.isHeld")
    wanted = np.arctan2(-place[0], place[1])
    assert abs(page.live("wrapped(policy.state[0])") - wanted) < 0.05
    page.live("live.advance(5)")  # It is held, and does not fall.
    assert abs(page.live("wrapped(policy.state[0])") - wanted) < 0.05
    page.mouse.up()
    page.live("live.advance(60)")
    angles = [page.live("(live.advance(1), wrapped(policy.state[0]))") for _ in range(40)]
    assert np.abs(angles).max() < 0.3


def test_keys_push_pause_and_restart(page: Page):
    page.locator("[data-live=policy]").focus()
    page.keyboard.press("ArrowLeft")
    assert page.live("policy.state[1]") == 3
    assert page.live("random.state[1]") == 0
    page.keyboard.press("r")
    assert page.live("policy.state[1]") == 0
    page.keyboard.press(" ")
    expect(page.locator("[data-live=time]")).not_to_have_text("0.0 s")
    page.keyboard.press(" ")
    assert page.locator("[data-live=run]").inner_text() == "Run"


def test_buttons_push_and_step(page: Page):
    page.locator("[data-live=right]").click()
    assert page.live("[policy.state[1], random.state[1]]") == [-3, -3]
    assert not page.locator("[data-live=up]").is_visible()
    page.locator("[data-live=step]").click()
    assert page.locator("[data-live=time]").inner_text() == "0.1 s"  # An interval is 0.05 s.
    page.locator("[data-live=restart]").click()
    assert page.live("policy.state[1]") == 0


def test_observations_are_disturbed_as_the_sliders_say(page: Page):
    page.locator("[data-live=dropped]").fill("95")
    page.locator("[data-live=noise]").fill("4")
    found = page.live("live.simulation.disturbance")
    assert found == {"noise": 4, "dropped": 0.95}
    seen = page.live("data.map(() => (live.advance(1), policy.isSeen))", list(range(300)))
    assert 0 < np.mean(seen) < 0.15
    assert page.locator("[data-live=dropped-text]").inner_text() == "95 %"


def test_the_value_is_that_of_the_surrogate_of_the_state(page: Page):
    page.live("live.paint(0)")
    hanging = page.locator("[data-live=policy-value]").inner_text()
    page.live("(live.simulation.place(policy, [0, 0]), live.paint(0))")
    upright = page.locator("[data-live=policy-value]").inner_text()
    assert hanging.endswith(" nats")
    assert float(upright.split()[0]) > float(hanging.split()[0]) + 0.1


def test_landscapes_of_other_plans_can_be_chosen(page: Page):
    which, high = page.locator("[data-live=which]"), page.locator("[data-live=high]")
    names = which.locator("option").all_inner_texts()
    assert names == ["5 steps, variational", "1 step, exact", "5 steps, exact"]
    shown = []
    for name in names:
        which.select_option(name)
        shown.append(float(high.inner_text().split()[0]))
    assert abs(shown[0] - shown[2]) < 0.05
    assert shown[1] < shown[0] - 1


def test_a_finger_drags(browser: Any, run: Path):
    phone = Page(
        browser,
        run,
        has_touch=True,
        reduced_motion="reduce",
        viewport={"width": 360, "height": 740},
    )
    phone.locator("[data-live=policy]").scroll_into_view_if_needed()
    x, y = phone.bob("policy", (-1, 0))
    phone.touchscreen.tap(x, y)
    assert abs(phone.live("wrapped(policy.state[0])") - np.pi / 2) < 0.05
    assert not phone.live("policy.isHeld")
    phone.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_it_is_legible_and_keeps_up(browser: Any, run: Path, width: int, scheme: str):
    """Nothing is wider than the screen, all is drawn, and time passes by itself."""
    viewport = {"width": width, "height": 900}
    page = Page(browser, run, color_scheme=scheme, viewport=viewport)
    page.wait_for_timeout(1500)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.live("live.simulation.actors.every((actor) => actor.trail.length > 5)")
    for name in ("policy", "random", "map"):
        drawn = page.evaluate(
            "(name) => { const it = document.querySelector(`[data-live=${name}]`); const all = "
            "it.getContext('2d').getImageData(0, 0, it.width, it.height).data; "
            "return new Set(new Uint32Array(all.buffer)).size; }",
            name,
        )
        assert drawn > 10, name
    keep_picture(page, f"report-{width}-{scheme}")
    page.close()


def test_motion_is_not_started_where_it_is_not_wanted(page: Page):
    page.wait_for_timeout(300)
    assert page.locator("[data-live=time]").inner_text() == "0.0 s"
    assert page.locator("[data-live=run]").inner_text() == "Run"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with a replay, whose films have frames as bright as it is late."""
    folder = tmp_path_factory.mktemp("recorded")
    replay(folder, policy=episode(40, num_frames=20), random=episode(25, ended=True, num_frames=13))
    page_of(folder)
    return folder


def open_replay(browser: Any, folder: Path, **about: Any) -> Page:
    return Page(browser, folder, ready="#replay .controls", **about)


@pytest.fixture
def player(browser: Any, recorded: Path) -> Iterator[Page]:
    """The replay at rest."""
    about: dict[str, Any] = {"reduced_motion": "reduce", "viewport": {"width": 1000, "height": 900}}
    opened = open_replay(browser, recorded, **about)
    yield opened
    opened.close()


BRIGHTNESS = """
  return new Promise((done) => {
    const film = document.querySelector("[data-replay=NAME-film]");
    const look = () => {
      const canvas = document.createElement("canvas");
      canvas.width = canvas.height = 1;
      const context = canvas.getContext("2d");
      context.drawImage(film, 0, 0, 1, 1);
      done(context.getImageData(0, 0, 1, 1).data[0]);
    };
    const wait = () => (film.seeking || film.readyState < 2 ? setTimeout(wait, 20) : look());
    setTimeout(wait, 50);
  });"""


@pytest.mark.parametrize("at", [0, 9, 24, 39, 3])
def test_films_and_charts_show_the_time_of_the_slider(player: Page, at: int):
    player.locator("[data-replay=time]").fill(str(at))
    assert player.locator("[data-replay=clock]").inner_text() == f"{0.04 * at:.2f} s"
    for name, last in (("policy", 39), ("random", 24)):
        own = min(at, last)
        nats = player.locator(f"[data-replay={name}-value]").inner_text()
        assert nats == f"{1 + 0.01 * own:.2f} nats"
        brightness = player.replay(BRIGHTNESS.replace("NAME", name))
        assert abs(brightness - 10 * (own // 2)) <= 5
    assert player.locator("[data-replay=random-end]").inner_text() == (
        "(the episode has ended)" if at >= 24 else ""
    )
    assert player.locator("[data-replay=policy-end]").inner_text() == ""
    moved = player.locator("svg[data-left] .cursor").first.get_attribute("transform")
    assert (
        moved == f"translate({at / 39 * 272:g} 0)"
        or abs(float(str(moved)[10:-3]) - at / 39 * 272) < 0.01
    )


def test_keys_step_and_play(player: Page):
    assert player.replay("return replay.state.isRunning") is False
    player.locator("[data-replay=time]").focus()
    for _ in range(3):
        player.keyboard.press("ArrowRight")
    player.keyboard.press("ArrowLeft")
    assert player.replay("return replay.state.at") == 2
    player.keyboard.press(" ")
    expect(player.locator("[data-replay=run]")).to_have_text("Pause")
    expect(player.locator("[data-replay=clock]")).not_to_have_text("0.08 s")
    player.keyboard.press(" ")
    assert player.locator("[data-replay=run]").inner_text() == "Play"


def test_a_finger_moves_through_a_chart(browser: Any, recorded: Path):
    phone = open_replay(
        browser,
        recorded,
        has_touch=True,
        reduced_motion="reduce",
        viewport={"width": 360, "height": 740},
    )
    chart = phone.locator("svg[data-left]").first
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    phone.touchscreen.tap(box["x"] + box["width"] * (46 + 136) / 340, box["y"] + box["height"] / 3)
    assert phone.replay("return replay.state.at") in (19, 20)
    phone.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_replay_plays_to_its_end_and_fits(
    browser: Any, recorded: Path, width: int, scheme: str
):
    viewport = {"width": width, "height": 900}
    opened = open_replay(browser, recorded, color_scheme=scheme, viewport=viewport)
    expect(opened.locator("[data-replay=clock]")).to_have_text("1.56 s", timeout=20_000)
    expect(opened.locator("[data-replay=run]")).to_have_text("Play")
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    keep_picture(opened, f"replay-{width}-{scheme}")
    opened.close()


def watched(name: str, values: Sequence[float]) -> Training:
    metrics = [
        Metrics("channel", 0, 100 * number, {"bound": value, "gradient_norm": 1 / number})
        for number, value in enumerate(values, start=1)
    ]
    return Training(name, "not finished", 0.5, metrics)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_training_is_watched_as_long_as_the_reader_likes(
    browser: Any, tmp_path: Path, width: int, scheme: str
):
    def write(*values: float) -> None:
        trainings = [watched("one", values), watched("<b>two</b>", values[::-1])]
        write_watch(trainings, tmp_path / "watch.html", note=f"{len(values)} looks", every=1.0)

    write(1.0, 2.0)
    viewport = {"width": width, "height": 900}
    opened = Page(
        browser, tmp_path, name="watch.html", ready="svg", color_scheme=scheme, viewport=viewport
    )
    write(1.0, 2.0, 2.5)
    expect(opened.get_by_text("3 looks")).to_be_visible()
    opened.locator("#refresh").uncheck()
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    keep_picture(opened, f"watch-{width}-{scheme}")
    write(1.0, 2.0, 2.5, 2.6)
    opened.wait_for_timeout(1500)
    assert opened.get_by_text("3 looks").is_visible()
    opened.reload()
    assert not opened.locator("#refresh").is_checked()
    opened.locator("#refresh").check()
    write(1.0, 2.0, 3.0, 4.0, 5.0)
    expect(opened.get_by_text("5 looks")).to_be_visible()
    opened.close()
