"""Tasks beside empowerment: what else counts, and how much."""

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from empowerment.model import LearntReward
from empowerment.types import Action, Observation, Scalar, State
from empowerment.worlds import AbstractWorld

Gained = TypeVar("Gained", Array, np.ndarray)


class Task(eqx.Module):
    r"""A reward beside empowerment.

    A step gains $\hat{\mathcal{E}}(z') + w\, r(x', u)$: the bound at the successor, in nats, and
    the reward of what is perceived there on average, after an admissible action. A weight of zero
    leaves empowerment alone, an infinite one the task alone. A reward that was learnt from data is
    one of states, and is paid for as long as an episode goes on.

    Karl et al. (2018), Sec. 5, call for "the integration of task-based reward functions, such as
    distance to a goal, with empowerment".

    Attributes:
        reward: $r$, in `jax.numpy`; a `Goal` is one. Or one that was learnt with a world.
        weight: $w$, in nats per unit of reward.
    """

    reward: Callable[[Observation, Action], Scalar] | LearntReward
    weight: float = eqx.field(static=True, default=1.0)

    def __check_init__(self):
        """Check the weight."""
        if not self.weight >= 0:
            raise ValueError(f"Expected the weight of a task to be at least 0; got {self.weight}.")

    def gain(self, bound: Gained, reward: Gained) -> Gained:
        """Return what is gained for a bound and a reward, in nats."""
        return reward if math.isinf(self.weight) else bound + self.weight * reward

    @property
    def goes_on(self) -> bool:
        """Whether what is left after the end of an episode stays as it is, rather than nothing."""
        return not isinstance(self.reward, LearntReward)

    def reward_at(
        self, world: AbstractWorld, before: State, action: Action, after: State
    ) -> Scalar:
        """Return the reward of an admissible action that has led from a state to another."""
        if isinstance(self.reward, LearntReward):
            return self.reward(before, action, after)
        return self.reward(world.emission(after).mean, action)

    def reward_along(
        self,
        observations: Float[np.ndarray, "times observation"],
        actions: Float[np.ndarray, "steps action"],
        rewards: Float[np.ndarray, " steps"] | None = None,
    ) -> Float[np.ndarray, " steps"]:
        """Return the rewards of what really happened: of a learnt reward, those recorded."""
        if isinstance(self.reward, LearntReward):
            if rewards is None:
                raise ValueError("Expected episodes with rewards, as a learnt one is; got none.")
            return rewards / float(self.reward.unit)
        pairs = jnp.asarray(observations[1:], float), jnp.asarray(actions, float)
        return np.asarray(jax.vmap(self.reward)(*pairs))


def counted(task: Task | None) -> Task | None:
    """Return a task that has weight, or none: without weight all is as without a task."""
    return None if task is None or task.weight == 0 else task


class Goal(eqx.Module):
    r"""A reward for being at a place, on some of the perceived columns.

    $$r = 1 - \sqrt{1 + d^2 / s^2}$$

    with $d$ the distance and $s$ the scale. Within the scale it is quadratic, so that empowerment
    has a say about the last bit; far away it is linear, so that a goal is felt from anywhere.

    Attributes:
        columns: The columns of an observation that count.
        place: Where they should be.
        scale: $s$, in the units of the columns.
        turns: For each of them whether it is an angle in radians.
    """

    columns: tuple[int, ...] = eqx.field(static=True)
    place: Float[Array, " columns"]
    scale: float = eqx.field(static=True)
    turns: tuple[bool, ...] = eqx.field(static=True)

    def __call__(self, observation: Observation, action: Action) -> Scalar:
        """Return the reward: zero at the goal, less elsewhere."""
        offset = observation[jnp.array(self.columns)] - self.place
        wrapped = jnp.arctan2(jnp.sin(offset), jnp.cos(offset))
        offset = jnp.where(jnp.array(self.turns), wrapped, offset)
        return 1 - jnp.sqrt(1 + jnp.sum(offset**2) / self.scale**2)


def make_goal(
    goal: str, names: Sequence[str], *, angles: Sequence[str] = (), scale: float = 1.0
) -> Goal:
    """Build a goal from words such as `x=2,y=3`.

    Args:
        goal: The columns that count, and where they should be.
        names: The names of all perceived columns.
        angles: The names of those that are angles in radians.
        scale: How near is near, in the units of the columns.

    Raises:
        ValueError: If the words are no goal, or name other columns.
    """
    if not 0 < scale < math.inf:
        raise ValueError(f"Expected the scale of a goal to be positive and finite; got {scale}.")
    places = parse_goal(goal)
    missing = [name for name in places if name not in names]
    if missing:
        raise ValueError(
            f"Expected a goal to be among the columns {', '.join(names)}; got {', '.join(missing)}."
        )
    return Goal(
        tuple(map(list(names).index, places)),
        jnp.asarray(list(places.values()), float),
        scale,
        tuple(name in angles for name in places),
    )


def parse_goal(goal: str) -> dict[str, float]:
    """Read a goal such as `x=2,y=3`: the place of each column.

    Raises:
        ValueError: If it is not one.
    """
    places: dict[str, float] = {}
    for part in goal.split(","):
        name, _, number = (word.strip() for word in part.rpartition("="))
        try:
            place = float(number)
        except ValueError:
            place = math.nan
        if not name or name in places or not math.isfinite(place):
            raise ValueError(
                f"Expected a goal to give a number to each of some columns, as x=2,y=3; got "
                f"{goal!r}."
            )
        places[name] = place
    return places
