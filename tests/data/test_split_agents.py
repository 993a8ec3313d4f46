"""Several alike agents, seen as one agent several times."""

import numpy as np
import pytest

from empowerment.data import Episode, Trajectories, split_agents
from empowerment.data.spaces import numbered_spaces


def of_two(length: int, seed: int) -> Trajectories:
    random = np.random.default_rng(seed)
    episode = Episode(
        random.normal(size=(length + 1, 6)),
        random.normal(size=(length, 4)),
        terminated=True,
        truncated=False,
    )
    return Trajectories((episode,), numbered_spaces(6, 4), {"environment": "two"})


def test_each_agent_has_its_own_channels():
    both = of_two(5, 0)
    found = split_agents(both, 2)
    (whole,) = both.episodes
    assert len(found.episodes) == 2
    for agent, episode in enumerate(found.episodes):
        np.testing.assert_array_equal(
            episode.observations, whole.observations[:, 3 * agent : 3 * agent + 3]
        )
        np.testing.assert_array_equal(episode.actions, whole.actions[:, 2 * agent : 2 * agent + 2])
        assert episode.terminated
    assert (found.observation_size, found.action_size) == (3, 2)
    assert found.spaces.observation_names == both.spaces.observation_names[:3]


def test_one_agent_is_left_as_it_is():
    both = of_two(5, 0)
    assert split_agents(both, 1) is both


@pytest.mark.parametrize("agents", [3, 4])
def test_channels_that_cannot_be_shared_are_refused(agents: int):
    with pytest.raises(ValueError, match=f"of {agents} alike agents to have a multiple"):
        split_agents(of_two(5, 0), agents)
