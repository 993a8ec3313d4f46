"""`empower train`, `empower evaluate` and `empower report`."""

import dataclasses
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from empowerment.cli.console import say, show_progress
from empowerment.experiments import (
    LEARNT,
    PRESETS,
    Experiment,
    evaluate_run,
    refresh_manifest,
    survey,
    train_agent,
    with_budget,
)
from empowerment.report import write_report


@dataclasses.dataclass(frozen=True)
class TrainCommand:
    """Train a policy that seeks empowered states, and keep everything in a run folder.

    A run can be interrupted at any moment, and resumed to the same bits by the same command
    with --resume. Every setting of the experiment is a flag.

    Try `empower train pendulum --out runs/pendulum`, then `empower evaluate runs/pendulum` and
    `empower report runs/pendulum`. Any environment will do, its world is learnt:
    `empower train --env Pendulum-v1 --out runs/mine`.
    """

    out: Annotated[Path, arg(metavar="RUN")]
    """The run folder."""

    experiment: Annotated[Positional[str | None], arg(metavar="EXPERIMENT")] = None
    """What to train: pendulum, as we recommend; pendulum-learnt, from data alone;
    ball and ball-10step, from data; ball-paper, as printed; pendulum-paper,
    as printed in the paper; pendulum-paper-5step, the paper's with five steps and the best of its
    kind of families. None with --env or --data: a world that is yet to be learnt."""

    seed: int = 0
    """Of everything random."""

    budget: Literal["smoke", "full"] = "full"
    """smoke: so small that it only shows that everything runs."""

    resume: bool = False
    """Go on with the run that is in the folder."""

    debug: bool = False
    """Show where an error comes from."""

    settings: Experiment = PRESETS["pendulum"]
    """Of the experiment; the defaults are those of the one that is named."""

    def run(self) -> None:
        """Train, and say what came out."""
        start = time.monotonic()
        if self.experiment not in PRESETS and (self.experiment or not self.settings.is_learnt):
            raise ValueError(
                f"Expected the experiment to be one of {', '.join(PRESETS)}, or an environment by "
                f"--env ID; got {self.experiment}."
            )
        experiment = with_budget(self.settings, self.budget)
        try:
            with show_progress(self.out.name) as progress:
                train_agent(
                    experiment,
                    folder=self.out,
                    seed=self.seed,
                    resume=self.resume,
                    progress=progress,
                    say=say,
                )
        except KeyboardInterrupt:
            say(f"Interrupted; all that was done is in {self.out}. Go on with it by --resume.")
            raise SystemExit(130) from None
        say(
            f"Trained in {time.monotonic() - start:.0f} s; the run is in {self.out}. See what it "
            f"does with: empower evaluate {self.out}"
        )


def train_command(arguments: Sequence[str]) -> type[TrainCommand]:
    """Give the command with the settings of the experiment that the words of a user name."""
    named = next((word for word in arguments if word in PRESETS), None)
    is_learnt = any(word.split("=")[0] in ("--env", "--data") for word in arguments)
    defaults = PRESETS[named or "pendulum"] if named or not is_learnt else LEARNT

    @dataclasses.dataclass(frozen=True)
    class Named(TrainCommand):
        settings: Experiment = defaults

    Named.__doc__ = TrainCommand.__doc__
    return Named


@dataclasses.dataclass(frozen=True)
class EvaluateCommand:
    """Run a trained policy in the real environment, beside one that acts at random.

    The mean action is taken; under `sampled` are the figures of actions that are drawn, under
    `uniform` those of random ones. For the pendulum, held_fraction is the share of episodes of
    20 s whose last 5 s are spent within 0.3 rad of upright, from any angle; the time to upright
    is from hanging at rest. For balls in a box: how often they touch walls and each other, and
    how far they keep away. For the robot with two legs: how long it lasts and how much of the
    time it stands, also with no action at all, under `zero`.
    """

    folder: Annotated[Positional[Path], arg(metavar="RUN")]
    """The run folder."""

    episodes: int = 100
    """How many episodes."""

    seed: int = 0
    """Of the starts."""

    json: bool = False
    """Print the figures as JSON to standard output."""

    debug: bool = False
    """Show where an error comes from."""

    def run(self) -> None:
        """Evaluate, keep the figures in the run folder, and say them."""
        with show_progress(self.folder.name) as progress:
            found = evaluate_run(
                self.folder, episodes=self.episodes, seed=self.seed, progress=progress
            )
        refresh_manifest(self.folder)
        if self.json:
            print(json.dumps(found, indent=2))
            return
        for sentence in _in_words(found):
            say(sentence)


@dataclasses.dataclass(frozen=True)
class ReportCommand:
    """Draw what a run has learnt: one page, report.html, that opens from disk.

    What the page needs and the folder does not have yet is computed first: the landscapes, the
    evaluation, and one episode.
    """

    folder: Annotated[Positional[Path], arg(metavar="RUN")]
    """The run folder."""

    grid: Annotated[str, arg(metavar="NxM")] = "21x21"
    """States along each axis of the landscapes."""

    debug: bool = False
    """Show where an error comes from."""

    def run(self) -> None:
        """Compute what is missing, then draw from files only."""
        with show_progress(self.folder.name) as progress:
            survey(self.folder, grid=self.grid, progress=progress)
        for sentence in _in_words(json.loads((self.folder / "evaluation.json").read_text())):
            say(sentence)
        page = write_report(self.folder)
        refresh_manifest(self.folder)
        say(f"The report is in {page}: open it in a browser.")


def _in_words(found: dict) -> list[str]:
    """Say what the figures of an evaluation mean."""
    sentences = [
        f"Along {found['episodes']} episodes the policy has {found['empowerment_mean']:.3f} nats "
        f"of empowerment on average; a random one {found['uniform']['empowerment_mean']:.3f}."
    ]
    if found["survived_fraction"] < 1 or found["uniform"]["survived_fraction"] < 1:
        sentences.append(
            f"It survives {found['survived_fraction']:.0%} of them, "
            f"{found['episode_length_mean']:.0f} steps on average (random: "
            f"{found['uniform']['survived_fraction']:.0%}, "
            f"{found['uniform']['episode_length_mean']:.0f})."
        )
    if "time_to_upright_median_s" in found:
        time_ = found["time_to_upright_median_s"]
        swing = "does not swing up" if time_ is None else f"is upright after {time_:.2f} s"
        sentences.append(
            f"It holds the pendulum upright in {found['held_fraction']:.0%} of episodes (random: "
            f"{found['uniform']['held_fraction']:.0%}); from hanging at rest it {swing} (median)."
        )
    if "standing_fraction" in found:
        sentences.append(
            f"It stands {found['standing_fraction']:.0%} of the time, with the hull at "
            f"{found['mean_height']:.2f} and tilted by {found['mean_abs_angle']:.2f} (random: "
            f"{found['uniform']['standing_fraction']:.0%}; no action: "
            f"{found['zero']['standing_fraction']:.0%})."
        )
    if "mean_wall_distance" in found:
        uniform = found["uniform"]
        sentences.append(
            f"It touches a wall {found['wall_touch_fraction']:.1%} of the time (random: "
            f"{uniform['wall_touch_fraction']:.1%}) and keeps {found['mean_wall_distance']:.2f} "
            f"from the closest (random: {uniform['mean_wall_distance']:.2f})."
        )
    if "contacts_per_step" in found:
        uniform = found["uniform"]
        sentences.append(
            f"Balls are in contact {found['contacts_per_step']:.3f} times a step (random: "
            f"{uniform['contacts_per_step']:.3f}), {found['mean_pair_distance']:.2f} apart on "
            f"average (random: {uniform['mean_pair_distance']:.2f})."
        )
    return sentences
