"""What empowerment is paid: as a bonus or as shaping, and in units of its own spread."""

import math
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float

Normalise = Literal["none", "variance"]
Values = Float[np.ndarray, " envs"]


class Pay:
    r"""Intrinsic reward of many environments, from their empowerment.

    A bonus is the empowerment of the state that a step leads to, $\mathcal{E}(s')$. Shaping is
    $\gamma\,\mathcal{E}(s') - \mathcal{E}(s)$, whose discounted sum depends on the start alone (Ng,
    Harada and Russell, 1999).

    Args:
        num_envs: Number of environments.
        weight: Weight of the intrinsic reward.
        extrinsic: Weight of the environment's own reward.
        normalise: `variance` divides by the standard deviation of the discounted intrinsic return.
        shaping: Whether to pay shaping rather than a bonus.
        gamma: Discount of the shaping, or of the return that is measured.

    Raises:
        ValueError: If a number is out of its range, or shaping is to be normalised.
    """

    def __init__(
        self,
        num_envs: int,
        *,
        weight: Any,
        extrinsic: Any,
        normalise: str,
        shaping: bool,
        gamma: Any,
    ):
        self.weight = _at_least_zero("weight", weight)
        self.extrinsic = _at_least_zero("extrinsic", extrinsic)
        if normalise not in ("none", "variance"):
            raise ValueError(f"Expected normalise to be 'none' or 'variance'; got {normalise!r}.")
        if shaping and normalise != "none":
            raise ValueError(
                "Expected normalise to be 'none' with shaping, whose guarantee needs a scale that "
                f"stays; got {normalise!r}. Choose the scale by weight."
            )
        self._gamma = _finite("gamma", gamma)
        if not 0 < self._gamma <= 1 or (self._gamma == 1 and normalise != "none"):
            limit = "at most" if normalise == "none" else "below"
            raise ValueError(f"Expected gamma to be above 0 and {limit} 1; got {gamma}.")
        self._shaping = shaping
        self._before = np.zeros(num_envs)
        self._spread = Spread(num_envs, self._gamma) if normalise == "variance" else None

    @property
    def scale(self) -> float:
        """What intrinsic rewards are divided by."""
        return 1.0 if self._spread is None else math.sqrt(self._spread.variance)

    def begin(self, values: Values, mask: Bool[np.ndarray, " envs"] | None = None) -> None:
        """Note the empowerment in which episodes begin, in all environments or those of a mask."""
        np.copyto(self._before, values, where=True if mask is None else mask)

    def intrinsic(self, values: Values, paid: Bool[np.ndarray, " envs"] | None = None) -> Values:
        """Return the intrinsic reward of a step, before its weight.

        Args:
            values: Empowerment after the step; zero where an episode terminated.
            paid: Which environments made a step; the others get nothing.
        """
        reward = self._gamma * values - self._before if self._shaping else values.copy()
        self._before = values.copy()
        if self._spread is not None:
            self._spread.update(reward, paid)
            reward = reward / self.scale
        return reward if paid is None else np.where(paid, reward, 0.0)

    def total(self, rewards: Any, intrinsic: Any) -> Any:
        """Return the sum of both rewards; the environment's own, as it is, where that is all."""
        if self.weight == 0:
            return rewards if self.extrinsic == 1 else self.extrinsic * rewards
        if self.extrinsic == 0:
            return self.weight * intrinsic
        return self.extrinsic * rewards + self.weight * intrinsic


class Spread:
    r"""Running variance of the discounted intrinsic return, $R_t = \gamma R_{t-1} + r_t$.

    As in random network distillation (Burda et al., 2019) the return goes on where episodes end,
    and all returns so far count alike, of all environments together. They are joined by one more
    observation, of mean 0 and variance 1, so that the first rewards are not blown up.

    Args:
        num_envs: Number of environments.
        gamma: The discount.
    """

    def __init__(self, num_envs: int, gamma: float):
        self._returns, self._gamma = np.zeros(num_envs), gamma
        self._count, self._mean, self.variance = 1.0, 0.0, 1.0

    def update(self, rewards: Values, paid: Bool[np.ndarray, " envs"] | None = None) -> None:
        """Add the returns of a step, of all environments or of some."""
        latest = self._gamma * self._returns + rewards
        if paid is not None:
            latest = np.where(paid, latest, self._returns)
        self._returns = latest
        counted = latest if paid is None else latest[paid]
        if not counted.size:
            return
        count, mean = counted.size, float(counted.mean())
        variance = float(((counted - mean) ** 2).mean())
        total, change = self._count + count, mean - self._mean
        squares = self._count * self.variance + count * variance
        self.variance = (squares + change**2 * self._count * count / total) / total
        self._mean += change * count / total
        self._count = total


def _finite(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"Expected {name} to be a finite number; got {value!r:.80}.")
    return number


def _at_least_zero(name: str, value: Any) -> float:
    number = _finite(name, value)
    if number < 0:
        raise ValueError(f"Expected {name} to be at least 0; got {value}.")
    return number
