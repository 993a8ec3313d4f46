"""A custom world: a pole on a cart, balanced by a policy that seeks empowered states.

    python examples/cartpole.py

There is no reward. A pole that has fallen cannot be moved any more, so its empowerment is zero;
the policy keeps the pole up because that keeps its options open.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

import empowerment as emp

FALLEN = 0.8
"""Angle in radians beyond which the pole has fallen."""


class CartPole(emp.AbstractWorld):
    """A pole on a cart that is pushed with up to 10 N; a fallen pole stays down."""

    states: emp.Box = eqx.field(
        default_factory=lambda: emp.Box(
            [-3.0, -1.0, -4.0], [3.0, 1.0, 4.0], ("velocity", "angle", "turning")
        )
    )
    actions: emp.Box = eqx.field(default_factory=lambda: emp.Box([-10.0], [10.0], ("force",)))

    def initial(self) -> emp.Uniform:
        """Return the distribution of start states: nearly at rest and upright."""
        return emp.Uniform(jnp.full(3, -0.1), jnp.full(3, 0.1))

    def transition(self, state: jax.Array, action: jax.Array) -> emp.Gaussian:
        """Simulate 0.05 s (Barto, Sutton and Anderson, 1983)."""
        velocity, angle, turning = state
        sin, cos = jnp.sin(angle), jnp.cos(angle)
        push = (action[0] + 0.05 * turning**2 * sin) / 1.1
        turn = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        faster, turning = velocity + 0.05 * (push - 0.05 * turn * cos / 1.1), turning + 0.05 * turn
        moved = jnp.stack([faster, angle + 0.05 * turning, turning])
        return emp.Gaussian(jnp.where(jnp.abs(angle) > FALLEN, state, moved), jnp.zeros(3))

    def emission(self, state: jax.Array) -> emp.Gaussian:
        """Perceive the pole to within a few degrees, but not the velocity of the cart."""
        return emp.Gaussian(state[1:], jnp.array([0.05, 0.2]))


def train(channel_updates: int = 1000, policy_updates: int = 1000, seed: int = 0) -> emp.Policy:
    """Train a policy that seeks empowered states."""
    settings = emp.AgentSettings(
        steps=5, channel_updates=channel_updates, policy_updates=policy_updates
    )
    return emp.train_agent(CartPole(), settings, key=jax.random.key(seed)).policy


def balance(policy: emp.Policy, num_steps: int = 200) -> float:
    """Return the fraction of 10 s, started nearly upright, during which the pole is up."""
    world = emp.Bounded(CartPole())

    def step(state: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
        successor = world.transition(state, policy(state).mean).mean
        return successor, jnp.abs(successor[1]) < FALLEN

    def of_start(key: jax.Array) -> jax.Array:
        return jax.lax.scan(step, world.initial().sample(key=key), length=num_steps)[1].mean()

    return float(jax.vmap(of_start)(jax.random.split(jax.random.key(1), 64)).mean())


if __name__ == "__main__":
    world = emp.Bounded(CartPole())
    untrained = emp.Policy(world.states, 1, key=jax.random.key(0))
    print(f"Untrained policy: the pole is up {balance(untrained):.0%} of the time.")
    print(f"Trained policy: {balance(train()):.0%}.")
