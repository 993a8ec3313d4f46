"""The systems on which defaults are tried can be held, and not by chance."""

import gymnasium
import pytest
from benchmarks.balance import SYSTEMS, Balance


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_linear_controller_holds_what_random_actions_do_not(name: str):
    environment = gymnasium.make(name)
    system = environment.unwrapped
    assert isinstance(system, Balance)
    for seed in range(3):
        for is_held in (True, False):
            environment.reset(seed=seed)
            environment.action_space.seed(seed)
            terminated = truncated = False
            while not (terminated or truncated):
                action = system.hold() if is_held else environment.action_space.sample()
                *_, terminated, truncated, _ = environment.step(action)
            assert terminated is not is_held
