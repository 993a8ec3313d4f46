"""The monitor of a run's controller, calibrated on what its model was not trained on."""

from pathlib import Path

from empowerment.agent import monitored
from empowerment.controller import Bundle
from empowerment.model import DVBF, split
from empowerment.runs.experiment import Experiment
from empowerment.runs.loading import load_data


def add_monitor(
    bundle: Bundle, model: DVBF, experiment: Experiment, folder: Path, *, number: int, seed: int
) -> Bundle:
    """Add a monitor to a controller, from the validation and test data of its round.

    Args:
        bundle: The controller bundle.
        model: The model of its filter.
        experiment: The settings of the run.
        folder: The run folder.
        number: The round that the model is of.
        seed: Random seed of the run.
    """
    parts = load_data(folder, number, experiment.agents)
    divided = split(parts, seed, window=experiment.model.window)
    episodes = list(divided.validation.episodes)
    if divided.test is not None:
        episodes += divided.test.episodes
    return monitored(bundle, model, episodes)


def describe_monitor(bundle: Bundle) -> str:
    """Say how often the monitor of a controller of a learnt world is wrong."""
    limits = bundle.description.monitor
    if limits is None:
        return (
            "The controller does not watch whether observations are what its model expects: the "
            "held-out data are too few to calibrate a monitor, or too far from the model."
        )
    return (
        "The controller stops where observations are not what its model expects: on data such as "
        f"the {limits.num_steps} held-out steps, by mistake at most once in "
        f"{1 / limits.false_alarms_per_step:.0f} steps."
    )
