"""Datasets of several identical agents in one system, as data of one agent."""

from dataclasses import replace

from empowerment.data.spaces import Spaces
from empowerment.data.trajectories import Episode, Trajectories


def split_agents(trajectories: Trajectories, agents: int) -> Trajectories:
    """Split every joint episode into one episode per agent.

    Args:
        trajectories: Observations and actions are those of one agent after the other.
        agents: The number of agents.

    Returns:
        `agents` times as many episodes, in the spaces of the first agent.
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
    parts = [part for episode in trajectories.episodes for part in _split(episode, agents)]
    about = {**trajectories.about, "agents": agents}
    return Trajectories(tuple(parts), _first(trajectories.spaces, agents), about)


def _split(episode: Episode, agents: int) -> list[Episode]:
    observations, actions = (
        rows.reshape(len(rows), agents, -1).swapaxes(0, 1)
        for rows in (episode.observations, episode.actions)
    )
    pairs = zip(observations, actions, strict=True)
    return [replace(episode, observations=each, actions=own) for each, own in pairs]


def _first(spaces: Spaces, agents: int) -> Spaces:
    observed, acted = len(spaces.observation_names) // agents, len(spaces.action_names) // agents
    return Spaces(
        spaces.observation_low[:observed],
        spaces.observation_high[:observed],
        spaces.action_low[:acted],
        spaces.action_high[:acted],
        spaces.observation_names[:observed],
        spaces.action_names[:acted],
        spaces.action_choices[:acted],
    )
