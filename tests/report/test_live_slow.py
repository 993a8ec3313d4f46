"""A policy that was trained, in the page: it does there what it does in its environment."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.report.javascript import run as run_in_the_page, scripts_of

from empowerment.controller import read_bundle
from empowerment.environments import ENVIRONMENTS
from empowerment.report.live import live_data
from empowerment.runs import load_run
from empowerment.runs.live import write_live

PENDULUM = ENVIRONMENTS["pendulum"]
MOST_SWING_UP, ALL_SWING_UP = 60, 80
"""Actions, each 0.05 s. Between angles from which one swing is enough and those from which two are
needed there are a few from which it takes up to a second longer."""


@pytest.mark.slow
def test_a_pendulum_that_was_dragged_is_upright_again_within_three_seconds(tmp_path: Path):
    folder = tmp_path / "run"
    fast = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    command = [sys.executable, "-m", "empowerment.cli", "train", "pendulum", "--out", folder]
    subprocess.run(command, env=fast, check=True, capture_output=True)
    write_live(load_run(folder), folder)
    assert read_bundle(folder).description.interval == 0.05
    program = """
      const simulation = makeSimulation(data.live);
      const [policy] = simulation.actors;
      return data.angles.map((angle) => {
        const point = [-Math.sin(angle), Math.cos(angle)];
        simulation.restart(policy);
        simulation.place(policy, simulation.system.drag([0, 0], point));
        const path = [];
        for (let step = 0; step < 100; step++) {
          simulation.step();
          path.push(wrapped(policy.state[0]));
        }
        return path;
      });"""
    angles = np.linspace(-np.pi, np.pi, 121)
    data = {"live": live_data(folder), "angles": angles.tolist()}
    paths = np.abs(np.array(run_in_the_page(scripts_of(PENDULUM), program, data)))
    assert np.abs(paths[:, 0] - np.abs(angles)).max() < 0.1
    last = np.array([np.flatnonzero(path > 0.3).max(initial=-1) + 1 for path in paths])
    assert np.mean(last <= MOST_SWING_UP) > 0.95
    assert last.max() <= ALL_SWING_UP
