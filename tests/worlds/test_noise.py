"""Where the density of what is perceived is known in closed form, and where it is not."""

import jax
import jax.numpy as jnp
import pytest
from tests.odd_worlds import Foggy, Jump, Murky, Patch, Product, Scalar, Shaky, Squash

from empowerment.distributions import Gaussian
from empowerment.types import Action, State
from empowerment.worlds import (
    AbstractWorld,
    Ball,
    Bounded,
    Box,
    Pendulum,
    has_closed_form_density,
    observation_density,
    perceive,
)


class Rotated(AbstractWorld):
    """Process noise of two scales, perceived through a rotation: correlated."""

    states: Box = Box((-1.0, -1.0), (1.0, 1.0), ("x", "y"))
    actions: Box = Box((-1.0, -1.0), (1.0, 1.0), ("u", "v"))

    def initial(self):
        return self.states.uniform()

    def transition(self, state: State, action: Action) -> Gaussian:
        return Gaussian(state + action, jnp.array([0.3, 0.1]))

    def emission(self, state: State) -> Gaussian:
        turn = jnp.array([[0.8, 0.6], [-0.6, 0.8]])
        return Gaussian(turn @ state, jnp.full(2, 0.05))


class Edge(Scalar):
    """An emission that is affine in the region, but not where plans and noise lead."""

    def transition(self, state: State, action: Action) -> Gaussian:
        return Gaussian(state + action, jnp.full(1, 0.3))

    def emission(self, state: State) -> Gaussian:
        return Gaussian(jnp.clip(state, -2.2, 2.2), jnp.full(1, 0.1))


@pytest.mark.parametrize(
    ("world", "one_step", "two_steps"),
    [
        (Pendulum(), True, True),
        (Ball(), True, True),
        (Scalar(), True, True),
        (Foggy(), True, True),  # Gaussian after any plan, if of varying scale
        (Jump(), True, True),
        (Shaky(), True, False),
        (Patch(), True, False),  # noise in a hundredth of the region
        (Pendulum(process_noise=0.02), True, False),
        (Squash(), False, False),
        (Murky(), False, False),
        (Edge(), False, False),
        (Rotated(), False, False),
        (Product(Squash(), 3), False, False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_densities_are_known_where_they_are_exact(
    world: AbstractWorld, one_step: object, two_steps: object, getkey
):
    for given in (world, Bounded(world)):
        assert has_closed_form_density(given, steps=1, key=getkey()) == one_step
        assert has_closed_form_density(given, steps=2, key=getkey()) == two_steps


@pytest.mark.statistical
@pytest.mark.parametrize("world", [Shaky(), Foggy()], ids=lambda world: type(world).__name__)
def test_a_known_density_is_that_of_the_world(world: AbstractWorld, getkey):
    # Means and standard deviations of 20,000 samples, within five standard errors.
    state, plan = jnp.array([0.3]), jnp.array([[-0.7]])
    keys = jax.random.split(getkey(), 20_000)
    samples = jax.vmap(lambda key: perceive(world, state, plan, key=key))(keys)
    density = observation_density(world, state, plan)
    error = float(density.scale[0]) / 20_000**0.5
    assert float(samples.mean()) == pytest.approx(float(density.mean[0]), abs=5 * error)
    assert float(samples.std()) == pytest.approx(float(density.scale[0]), abs=5 * error)
