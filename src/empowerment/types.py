"""Array type aliases used in signatures."""

from collections.abc import Callable

from jaxtyping import Array, Float, Int, Key as _Key

State = Float[Array, " state"]
"""A state $z$ of a world."""

Action = Float[Array, " action"]
"""A control input $u$."""

Plan = Float[Array, "steps action"]
"""An open-loop sequence of actions $u_{t:t+n-1}$; one step is `steps == 1`."""

Observation = Float[Array, " observation"]
"""A perceived observation $x$ of a state."""

Scalar = Float[Array, ""]
"""A single number."""

Cell = Int[Array, ""]
"""The index of a state of a discrete world."""

Move = Int[Array, ""]
"""The index of an action of a discrete world."""

Key = _Key[Array, ""]
"""A typed random key from `jax.random.key`, consumed once."""

Progress = Callable[[str, int, int], None]
"""Receives the current activity, how much of it is done, and the total."""
