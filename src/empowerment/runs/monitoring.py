"""The monitor of a run's controller, calibrated on what its model was not trained on."""

from pathlib import Path

from empowerment.agent import monitored
from empowerment.controller import Bundle
from empowerment.model import DVBF, split
from empowerment.runs.experiment import Experiment
from empowerment.runs.loading import data_path, load_data


def add_monitor(
    bundle: Bundle, model: DVBF, experiment: Experiment, folder: Path, *, number: int, seed: int
) -> Bundle:
    """Add a monitor to a controller, from data that its model was not trained on.

    If the policy itself has acted in the environment, they are the data of that, on which only
    later rounds were trained: no others are so much like what the controller will observe. Else
    they are the validation and test data of the round.

    Args:
        bundle: The controller bundle.
        model: The model of its filter.
        experiment: The settings of the run.
        folder: The run folder.
        number: The round that the model is of.
        seed: Random seed of the run.
    """
    if data_path(folder, number + 1).exists():
        acted = load_data(folder, number + 1, experiment.agents)[-1]
        return monitored(bundle, model, acted.episodes)
    parts = load_data(folder, number, experiment.agents)
    divided = split(parts, seed, window=experiment.model.window)
    episodes = list(divided.validation.episodes)
    if divided.test is not None:
        episodes += divided.test.episodes
    return monitored(bundle, model, episodes)


def describe_monitor(bundle: Bundle) -> str:
    """Return a sentence about the false alarms of the monitor of a learnt world."""
    limits = bundle.description.monitor
    if limits is None:
        return (
            "The controller does not watch whether observations are what its model expects: the "
            "data to calibrate it on are too few, or what the model expects is too often wrong."
        )
    return (
        "The controller stops where observations are not what its model expects: on data such as "
        f"the {limits.num_steps} steps that it was calibrated on, by mistake at most once in "
        f"{1 / limits.false_alarms_per_step:.0f} steps."
    )
