"""What a run from a log alone says of where the log has been."""

import json
from dataclasses import asdict
from pathlib import Path

from empowerment.agent import TrainedAgent, support
from empowerment.data import join
from empowerment.files import write_atomic
from empowerment.runs.experiment import Experiment
from empowerment.runs.loading import load_data

SUPPORT = "support.json"


def write_support(experiment: Experiment, agent: TrainedAgent, folder: Path, seed: int) -> str:
    """Store how much of what the policy imagines the log has seen; return it as a sentence."""
    data = join(*load_data(folder, 0, experiment.agents))
    found = support(agent, data, seed=seed)
    write_atomic(folder / SUPPORT, (json.dumps(asdict(found), indent=2) + "\n").encode())
    return (
        f"{100 * found.share:.0f} % of what the policy imagines is where the log has been, and "
        f"{100 * found.by_time[-1]:.0f} % after {len(found.by_time)} steps; 99 % of the log itself "
        "is."
    )
