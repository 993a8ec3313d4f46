"""Sources of empowerment for a reward: runs, exports and worlds, checked for an environment."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from empowerment.controller.bound import BoundTracker
from empowerment.controller.bundle import Bundle
from empowerment.controller.bundle_io import read_bundle, read_npz
from empowerment.data import Spaces
from empowerment.data.environments import vector_spaces
from empowerment.environments import action_repeat_of


def make_tracker(source: Any, env: gymnasium.Env | gymnasium.vector.VectorEnv) -> BoundTracker:
    """Read a source, and build what tracks the states of an environment, or of all of a vector.

    Args:
        source: See `EmpowermentReward`.
        env: The environment, or a vector of them.

    Raises:
        ValueError: If the source has no bound, or is of another environment.
    """
    if isinstance(env, gymnasium.vector.VectorEnv):
        spaces, num_envs = (env.single_observation_space, env.single_action_space), env.num_envs
        known = getattr(env.unwrapped, "envs", [None])[0]  # In other processes they are not seen.
    else:
        spaces, num_envs, known = (env.observation_space, env.action_space), 1, env
    own = vector_spaces(*spaces, "the environment")
    bundle = read_source(source, len(own.observation_names))
    bundle.check_bound()
    _check_spaces(bundle, own)
    if known is not None:
        _check_wrappers(bundle, known)
    return BoundTracker(bundle, num_envs)


def read_source(source: Any, observation_size: int) -> Bundle:
    """Return the bundle of a source; that of a world is made, which takes a minute.

    Args:
        source: See `EmpowermentReward`.
        observation_size: Number of observed numbers of the environment.
    """
    if isinstance(source, Bundle):
        return source
    if isinstance(source, str | Path):
        path = Path(source)
        return read_npz(path) if path.suffix == ".npz" else read_bundle(path)
    if hasattr(source, "transition") and hasattr(source, "emission"):
        from empowerment.controller.world_bundle import world_bundle

        return world_bundle(source, observation_size)
    raise ValueError(
        "Expected the source to be a run folder, a controller that was exported as .npz, a bundle, "
        f"or a world; got {type(source).__name__}."
    )


def _check_spaces(bundle: Bundle, spaces: Spaces) -> None:
    """Refuse an environment with other observations or actions than the source is of."""
    about = bundle.description
    found = len(spaces.observation_names), len(spaces.action_names)
    if found != (about.observation_size, about.action_size):
        raise ValueError(
            f"Expected an environment with {about.observation_size} observed numbers and "
            f"{about.action_size} actions, as the source is of; got {found[0]} and {found[1]}."
        )
    if spaces.action_choices != about.choices:
        raise ValueError(
            f"Expected an environment with actions of {about.choices or 'no'} choices, as the "
            f"source is of; got {spaces.action_choices or 'none'}."
        )
    limits = np.array([spaces.action_low, spaces.action_high])
    if not np.allclose(limits, bundle.limits, rtol=1e-5, atol=0):
        raise ValueError(
            f"Expected an environment with actions from {list(about.low)} to {list(about.high)}, "
            f"as the source is of; got {limits[0].tolist()} to {limits[1].tolist()}. Wrappers that "
            "scale actions go around this one."
        )


def _check_wrappers(bundle: Bundle, env: gymnasium.Env) -> None:
    """Refuse wrappers by which the filter would see other steps than it has learnt."""
    about, repeat = bundle.description, action_repeat_of(env)
    if about.latent_size and repeat != about.action_repeat:
        raise ValueError(
            f"Expected an environment that repeats actions {about.action_repeat} times, as the "
            f"source is of; got {repeat}. Wrap it before, by empowerment.environments.ActionRepeat."
        )
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, gymnasium.wrappers.Autoreset):
            raise ValueError(  # noqa: TRY004 (invalid input, not a programming error)
                "Expected an environment that is reset by its caller; got Autoreset, which goes "
                "around this wrapper."
            )
        env = env.env
