"""Several alike agents in one system, seen as one agent several times."""

from dataclasses import replace

from empowerment.data.spaces import Spaces
from empowerment.data.trajectories import Episode, Trajectories


def split_agents(trajectories: Trajectories, agents: int) -> Trajectories:
    """Make an episode of each agent out of every episode of all.

    Args:
        trajectories: Of observations and actions that are those of one agent after the other.
        agents: How many there are.

    Returns:
        As many times the episodes, in the spaces of the first agent.
    """
    if agents == 1:
        return trajectories
    for what in ("observation", "action"):
        size = getattr(trajectories, f"{what}_size")
        if size % agents:
            raise ValueError(
                f"Expected {what}s of {agents} alike agents to have a multiple of as many "
                f"channels; got {size}."
            )
    found = [each for episode in trajectories.episodes for each in _each(episode, agents)]
    about = {**trajectories.about, "agents": agents}
    return Trajectories(tuple(found), _first(trajectories.spaces, agents), about)


def _each(episode: Episode, agents: int) -> list[Episode]:
    """Take an episode apart."""
    rows = episode.observations.reshape(len(episode.observations), agents, -1)
    acts = episode.actions.reshape(len(episode.actions), agents, -1)
    pairs = zip(rows.swapaxes(0, 1), acts.swapaxes(0, 1), strict=True)
    return [replace(episode, observations=seen, actions=done) for seen, done in pairs]


def _first(spaces: Spaces, agents: int) -> Spaces:
    """Give the spaces of the first agent, which are those of all."""
    seen, done = len(spaces.observation_names) // agents, len(spaces.action_names) // agents
    return Spaces(
        spaces.observation_low[:seen],
        spaces.observation_high[:seen],
        spaces.action_low[:done],
        spaces.action_high[:done],
        spaces.observation_names[:seen],
        spaces.action_names[:done],
    )
