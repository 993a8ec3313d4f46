"""Runs written by the previous version still load, to the same numbers."""

import json
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from empowerment.controller import Controller
from empowerment.runs import load_run

FOLDER = Path(__file__).parent / "version1"


@pytest.mark.parametrize("name", ["known", "learnt", "joint"])
def test_a_run_of_version_1_loads(name: str):
    run = load_run(FOLDER / name)
    expected = json.loads((FOLDER / name / "expected.json").read_text())
    state, agent = jnp.asarray(expected["state"], float), run.agent
    np.testing.assert_allclose(eqx.filter_jit(agent.act)(state), expected["action"], rtol=1e-5)
    information = eqx.filter_jit(agent.channel.information)(
        agent.world, state, key=jax.random.key(0)
    )
    # In nats: a difference of logarithms in single precision, of hardly any information.
    assert float(information) == pytest.approx(expected["information"], rel=1e-3, abs=1e-5)
    if expected["surrogate"] is None:
        assert agent.surrogate is None
    else:
        assert agent.surrogate is not None
        assert float(eqx.filter_jit(agent.surrogate)(state)) == pytest.approx(
            expected["surrogate"], rel=1e-5
        )
    assert run.seed == 2
    assert run.experiment.is_learnt == (name != "known")
    assert run.experiment.agent.joint == (name == "joint")
    if run.experiment.is_learnt:
        assert run.experiment.world is None
        assert run.experiment.model.updates == 100
        assert run.experiment.model.as_published == (name == "joint")


@pytest.mark.parametrize(("name", "size"), [("known", 2), ("learnt", 3), ("joint", 3)])
def test_a_controller_of_version_1_steps(name: str, size: int):
    controller = Controller.load(FOLDER / name, engine="numpy")
    action = controller.step(np.zeros(size))
    assert abs(action[0]) <= 2
