"""Empowerment as a reward: wrappers of Gymnasium's environments, in NumPy alone."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode

from empowerment.controller.pay import Normalise, Pay
from empowerment.controller.reward_source import make_tracker

_NONE = np.zeros(1)
"""Empowerment of a terminated state."""


class EmpowermentReward(gymnasium.Wrapper, RecordConstructorArgs):
    r"""Wrapper that pays the empowerment of the state that a step leads to.

    The reward is `extrinsic` times the environment's own, plus `weight` times the intrinsic one:
    $\mathcal{E}(s')$ in nats, or $\gamma\,\mathcal{E}(s') - \mathcal{E}(s)$ with `shaping`. A
    terminated state has no empowerment; truncation is no end. The filter of a learnt world runs
    inside. Observations and flags are untouched, and with a weight of 0 so is the reward.

    The info of a step has `empowerment` (of the state that is returned, in nats),
    `intrinsic_reward` and `extrinsic_reward` (both before their weights); that of a reset has
    `empowerment`.

    Args:
        env: The environment, with the observations and actions of the source.
        source: A run folder, a controller that was exported as `.npz` with its empowerment, a
            bundle, or a world whose state is what the environment shows.
        weight: Weight of the intrinsic reward.
        extrinsic: Weight of the environment's own reward.
        normalise: `variance` divides by the running standard deviation of the discounted intrinsic
            return, see `empowerment.controller.pay.Spread`.
        shaping: Whether to pay differences, which change no optimal policy if `gamma` is the
            discount of the learner.
        gamma: Discount.

    Raises:
        ValueError: If a number is out of its range, or the source is of another environment.
    """

    def __init__(
        self,
        env: gymnasium.Env,
        source: Any,
        *,
        weight: float = 1.0,
        extrinsic: float = 1.0,
        normalise: Normalise = "none",
        shaping: bool = False,
        gamma: float = 0.99,
    ):
        settings: dict[str, Any] = {
            "weight": weight,
            "extrinsic": extrinsic,
            "normalise": normalise,
            "shaping": shaping,
            "gamma": gamma,
        }
        RecordConstructorArgs.__init__(
            self, _disable_deepcopy=True, source=_recorded(source), **settings
        )
        gymnasium.Wrapper.__init__(self, env)
        self._pay = Pay(1, **settings)
        self._tracker = make_tracker(source, env)
        self._start = _start_of(env.action_space)

    @property
    def scale(self) -> float:
        """What intrinsic rewards are divided by: 1 unless they are normalised."""
        return self._pay.scale

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; the info has the empowerment of its first state."""
        observation, info = self.env.reset(seed=seed, options=options)
        values = self._tracker.begin(np.asarray(observation)[None])
        self._pay.begin(values)
        return observation, {**info, "empowerment": float(values[0])}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Make a step, and pay for the empowerment of the state that it leads to."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if terminated:
            values = _NONE
        else:
            values = self._tracker.advance(
                np.asarray(observation)[None], _rows(action, self._start, 1)
            )
        intrinsic = float(self._pay.intrinsic(values)[0])
        info = {
            **info,
            "empowerment": float(values[0]),
            "intrinsic_reward": intrinsic,
            "extrinsic_reward": reward,
        }
        return observation, self._pay.total(reward, intrinsic), terminated, truncated, info


class VectorEmpowermentReward(gymnasium.vector.VectorWrapper, RecordConstructorArgs):
    """The same for many environments at once, in any autoreset mode.

    Each is paid as `EmpowermentReward` would pay it, except that `normalise` takes the variance
    over all environments. In the info every quantity belongs to what it comes with:
    `intrinsic_reward` and `extrinsic_reward` to the rewards, `empowerment` to the observations and,
    with `SAME_STEP`, that in `final_info` to `final_obs`. With `NEXT_STEP` the step that resets an
    environment pays it nothing.

    Args:
        env: The environments, with the observations and actions of the source.
        source: See `EmpowermentReward`.
        weight: See `EmpowermentReward`.
        extrinsic: See `EmpowermentReward`.
        normalise: See `EmpowermentReward`.
        shaping: See `EmpowermentReward`.
        gamma: See `EmpowermentReward`.

    Raises:
        ValueError: As `EmpowermentReward`, and if the environments do not state their autoreset
            mode.
    """

    def __init__(
        self,
        env: gymnasium.vector.VectorEnv,
        source: Any,
        *,
        weight: float = 1.0,
        extrinsic: float = 1.0,
        normalise: Normalise = "none",
        shaping: bool = False,
        gamma: float = 0.99,
    ):
        settings: dict[str, Any] = {
            "weight": weight,
            "extrinsic": extrinsic,
            "normalise": normalise,
            "shaping": shaping,
            "gamma": gamma,
        }
        RecordConstructorArgs.__init__(
            self, _disable_deepcopy=True, source=_recorded(source), **settings
        )
        gymnasium.vector.VectorWrapper.__init__(self, env)
        self._mode = env.metadata.get("autoreset_mode")
        if not isinstance(self._mode, AutoresetMode):
            raise ValueError(  # noqa: TRY004 (invalid input, not a programming error)
                "Expected the environments to state their autoreset mode in "
                f"metadata['autoreset_mode']; got {self._mode!r}."
            )
        self._pay = Pay(env.num_envs, **settings)
        self._tracker = make_tracker(source, env)
        self._start = _start_of(env.single_action_space)
        self._is_over = np.zeros(env.num_envs, bool)

    @property
    def scale(self) -> float:
        """What intrinsic rewards are divided by: 1 unless they are normalised."""
        return self._pay.scale

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin episodes in all environments, or in those of `reset_mask` in the options."""
        begun = (options or {}).get("reset_mask")  # Environments remove it from the options.
        begun = np.ones(self.num_envs, bool) if begun is None else np.array(begun, bool)
        observations, infos = self.env.reset(seed=seed, options=options)
        values = np.where(begun, self._tracker.begin(np.asarray(observations), begun), 0.0)
        self._pay.begin(values, begun)
        self._is_over &= ~begun
        return observations, {**infos, **_entries(begun, empowerment=values)}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Make a step in all environments, and pay for the states that they lead to."""
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        over = np.logical_or(terminated, truncated)
        is_same_step = self._mode == AutoresetMode.SAME_STEP and over.any()
        seen = np.asarray(observations)
        reached = _final(seen, infos, over) if is_same_step else seen
        if np.any(terminated):  # Whatever is observed there.
            reached = np.where(terminated[:, None], 0.0, reached)
        rows = _rows(actions, self._start, self.num_envs)
        values = np.where(terminated, 0.0, self._tracker.advance(reached, rows))
        paid, begun = None, None
        if self._mode == AutoresetMode.NEXT_STEP and self._is_over.any():
            begun = self._is_over
            paid = ~begun
            values = np.where(begun, self._tracker.begin(seen, begun), values)
        intrinsic = self._pay.intrinsic(values, paid)
        infos = {
            **infos,
            **_entries(
                np.ones(self.num_envs, bool) if paid is None else paid,
                intrinsic_reward=intrinsic,
                extrinsic_reward=rewards.copy(),
            ),
        }
        if is_same_step:
            final = {**infos.get("final_info", {}), **_entries(over, empowerment=values)}
            infos |= {"final_info": final, "_final_info": over}
            values = np.where(over, self._tracker.begin(seen, over), values)
            self._pay.begin(values, over)
        infos |= _entries(np.ones(self.num_envs, bool), empowerment=values)
        self._is_over = over
        return observations, self._pay.total(rewards, intrinsic), terminated, truncated, infos


def _entries(mask: np.ndarray, **values: np.ndarray) -> dict[str, np.ndarray]:
    """Return entries of a vector's info, each with the mask of the environments that have it."""
    masks = {f"_{name}": mask.copy() for name in values}
    return {**values, **masks}


def _final(observations: np.ndarray, infos: dict[str, Any], over: np.ndarray) -> np.ndarray:
    """Return the observations with the last of each episode that is over, not the next first."""
    if "final_obs" not in infos:
        raise ValueError(
            "Expected the last observations of episodes as final_obs in the info, as the autoreset "
            "mode SAME_STEP has them; got none."
        )
    reached = observations.copy()
    for index in np.flatnonzero(over):
        reached[index] = infos["final_obs"][index]
    return reached


def _rows(actions: Any, start: np.ndarray | None, num_envs: int) -> np.ndarray:
    """Return actions as rows; those that are choices are counted from 0."""
    rows = np.asarray(actions).reshape(num_envs, -1)
    return rows if start is None else rows - start


def _start_of(space: gymnasium.Space) -> np.ndarray | None:
    """Return the number of the first choice on each axis of a discrete space, if it is one."""
    if isinstance(space, gymnasium.spaces.MultiBinary):
        return np.zeros((), np.int64)
    start = getattr(space, "start", None)
    return None if start is None else np.asarray(start, np.int64).ravel()


def _recorded(source: Any) -> Any:
    """Return a source as a specification records it: of paths the text."""
    return str(source) if isinstance(source, Path) else source
