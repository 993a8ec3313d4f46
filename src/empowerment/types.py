"""Array aliases: one name for each kind of array, used in every signature."""

from jaxtyping import Array, Float, Int
from jaxtyping import Key as _Key

State = Float[Array, " state"]
"""A state $z$ of a world."""

Action = Float[Array, " action"]
"""A control input $u$."""

Plan = Float[Array, "steps action"]
"""An open-loop sequence of actions $u_{t:t+n-1}$; one step is `steps == 1`."""

Observation = Float[Array, " observation"]
"""What is perceived of a state, $x$."""

Scalar = Float[Array, ""]
"""A single number."""

Cell = Int[Array, ""]
"""A state of a discrete world, by its index."""

Move = Int[Array, ""]
"""An action of a discrete world, by its index."""

Key = _Key[Array, ""]
"""A typed key, as `jax.random.key` makes them; it is consumed once."""
