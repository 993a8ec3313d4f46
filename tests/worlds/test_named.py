"""The worlds that can be called by name."""

import pytest

from empowerment.worlds import WORLDS, AbstractWorld, Grid


@pytest.mark.parametrize("name", WORLDS)
def test_named_world_can_be_made(name: str):  # warnings are errors in this suite
    assert isinstance(WORLDS[name](), AbstractWorld | Grid)


@pytest.mark.parametrize("name", ["pendulum", "ball", "cart"])
def test_named_world_takes_a_resolution(name: str):
    world = WORLDS[name](resolution=0.25)
    assert isinstance(world, AbstractWorld)
    assert world.emission(world.states.centre).scale.tolist() == [0.25, 0.25]


def test_slippery_slips():
    slippery, doorways = WORLDS["slippery"](), WORLDS["doorways"]()
    assert isinstance(slippery, Grid)
    assert isinstance(doorways, Grid)
    assert (doorways.kernel.max(axis=2) == 1).all()
    assert not (slippery.kernel.max(axis=2) == 1).all()
