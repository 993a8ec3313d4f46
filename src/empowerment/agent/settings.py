"""Hyperparameters of an agent, validated in one place."""

from dataclasses import dataclass
from typing import Literal

from empowerment.settings import check_at_least, check_positive


@dataclass(frozen=True)
class AgentSettings:
    """Hyperparameters of channel, fit of the bound, and policy."""

    steps: int | Literal["auto"] = 5
    """Number of actions in a plan, n; auto chooses it by how fast differences grow in a world that
    is known."""

    family: str = "auto"
    """Family of source and planning; auto is the tightest that the world allows, linearised an
    approximation in closed form, for capacities of ten nats and more."""

    channel_updates: int = 4000
    """Maximal number of updates of source and planning before the policy begins; training stops
    early when the bound settles."""

    joint: bool = False
    """Train source and planning together with the policy, as in Algorithm 1, and take the bound
    from them. Otherwise they stay fixed and a network is fitted to their bound."""

    bound_states: int = 8192
    """Number of states at which the bound is evaluated to fit a network to it."""

    policy_updates: int = 2000
    """Number of updates of the policy, a multiple of 100."""

    horizon: int = 16
    """Number of actions in a rollout, T."""

    num_starts: int = 128
    """Number of rollouts in an update, M."""

    first_beta: float = 200.0
    """Initial weight of empowerment against the prior of the policy."""

    last_beta: float = 200.0
    """Final weight of empowerment."""

    rise: int = 1
    """Number of updates over which beta goes linearly from first to last."""

    critic: bool = True
    """Whether to learn a value function of what follows the horizon."""

    discount: float = 0.995
    """Discount per step, with a critic."""

    learning_rate: float = 3e-3
    """Learning rate of the policy, before it decays to zero over the second half."""

    width: int = 128
    """Width of the hidden layers of all networks."""

    depth: int = 2
    """Number of hidden layers of all networks but a codebook's."""

    @property
    def num_steps(self) -> int:
        """Number of actions in a plan, once it is known."""
        if self.steps == "auto":
            raise ValueError("Expected the number of steps of a plan; got auto. Choose it first.")
        return self.steps

    def check(self) -> None:
        """Raise a `ValueError` if the settings cannot be."""
        if self.steps != "auto":
            check_at_least(self, steps=1)
        check_at_least(self, channel_updates=1, bound_states=1, policy_updates=100)
        check_at_least(self, horizon=1, num_starts=1, rise=1, width=1, depth=1)
        if self.policy_updates % 100:
            raise ValueError(
                f"Expected policy_updates to be a multiple of 100; got {self.policy_updates}."
            )
        check_positive(self, "first_beta", "last_beta", "learning_rate")
        if not 0 < self.discount <= 1 or (self.critic and self.discount == 1):
            raise ValueError(
                f"Expected the discount to be above 0 and, with a critic, below 1; got "
                f"{self.discount}."
            )
        if self.joint and self.family in ("auto", "codebook", "linearised"):
            raise ValueError(
                "Expected a joint training to name a family whose planning is learnt (intent, "
                f"flow, gaussian, autoregressive, paper); got {self.family}."
            )
