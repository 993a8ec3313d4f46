"""Compare ways to keep gradients useful through rollouts of unstable worlds, over seeds."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from benchmarks.seeds import finished, keep_rows, parser, read_rows, sweeper
from benchmarks.tables import Table
from empowerment.agent import with_steps
from empowerment.agent.training import untrained_agent, untrained_channel
from empowerment.distributions import Gaussian
from empowerment.policy import Policy, fit_surrogate, train_policy
from empowerment.runs import PRESETS
from empowerment.sweep.jobs import Job, Outcome
from empowerment.types import Action, Key, Scalar, State
from empowerment.worlds import WORLDS, AbstractWorld, Bounded

_EPISODES, _NUM_STEPS = 16, 400
"""Episodes of an evaluation, and their steps."""

Rule = Callable[[State], State]


def _clip(adjoint: State, limit: float) -> State:
    return adjoint / jnp.maximum(1.0, jnp.linalg.norm(adjoint) / limit)


def _cut(adjoint: State, limit: float) -> State:
    return jnp.where(jnp.linalg.norm(adjoint) > limit, 0.0, adjoint)


class Tamed(Bounded):
    """A world through which adjoints go back changed by a rule, step by step."""

    rule: Rule = eqx.field(static=True)

    def __init__(self, world: AbstractWorld, rule: Rule):
        super().__init__(world)
        self.rule = rule

    def transition(self, state: State, action: Action) -> Gaussian:
        """Return the distribution of the successor."""

        @jax.custom_vjp
        def tame(state: State) -> State:
            return state

        tame.defvjp(lambda state: (state, None), lambda _, adjoint: (self.rule(adjoint),))
        return super().transition(tame(state), action)


_LOOKS = 1, 4, 16, 64
"""Steps through which the growth of adjoints is measured."""

_STEPS_PER_UPDATE = 2048
"""Imagined steps in an update, the same for each horizon."""

_VARIANTS: dict[str, tuple[int, bool, Callable[..., State] | None]] = {
    "horizon 16": (16, True, None),
    "horizon 16, bound not refined": (16, False, None),
    "horizon 4": (4, True, None),
    "horizon 64": (64, True, None),
    "horizon 64, adjoint clipped": (64, True, _clip),
    "horizon 64, cut where it explodes": (64, True, _cut),
}
"""Horizon, whether the bound is refined, and what is done to adjoints."""


def train(job: Job) -> Outcome:
    """Measure a preset with a seed, in a worker of the sweep."""
    return keep_rows(job, lambda: measure(**job.settings))


def measure(preset: str, seed: int, updates: int, budget: str) -> dict[str, Table]:
    """Fit the bound once, train a policy in each way: rows of both tables."""
    experiment = PRESETS[preset].experiment.with_budget(budget)
    inner: Any = WORLDS[preset]()
    world = Bounded(inner)
    settings = with_steps(replace(experiment.agent, policy_updates=updates), world)
    channel_key, fit_key, fresh_key, policy_key, test_key = jax.random.split(
        jax.random.key(seed), 5
    )
    channel = untrained_channel(world, settings, key=channel_key)
    sizes = {"width": settings.width, "depth": settings.depth}
    fit, _ = fit_surrogate(channel, world, num_states=settings.bound_states, **sizes, key=fit_key)
    fresh = untrained_agent(world, settings, channel, fit.surrogate.mean, key=fresh_key)
    names = {"preset": preset, "seed": seed}
    growth: Table = [names | {"policy": "untrained"} | _growth(fresh.policy, world, test_key)]
    rows: Table = []
    for name, (horizon, is_refined, rule) in _VARIANTS.items():
        num_starts = _STEPS_PER_UPDATE // horizon
        imagined = world
        if rule is not None:
            # One range of returns for each unit of a state, in a mean over starts.
            imagined = Tamed(inner, partial(rule, limit=1 / num_starts))
        trained = train_policy(
            fresh,
            imagined,
            fit if is_refined else fit.surrogate,
            channel=channel,
            betas=np.full(updates, settings.last_beta),
            num_starts=num_starts,
            horizon=horizon,
            discount=settings.discount,
            learning_rate=settings.learning_rate,
            key=policy_key,
        )
        seen = [seen for _, seen in trained.history]
        height = _height(trained.model.policy, world, inner.height, test_key)
        if not rows:
            growth.append(names | {"policy": name} | _growth(trained.model.policy, world, test_key))
        rows.append(
            names
            | {
                "rollouts": name,
                "height": f"{float(height):.3f}",
                "largest gradient norm": f"{max(each['gradient_norm'] for each in seen):.3g}",
                "clipped updates": f"{np.mean([each['clipped'] for each in seen]):.0%}",
                "updates": updates,
            }
        )
        print(rows[-1], flush=True)
    return {"gradients": rows, "adjoints": growth}


def _growth(policy: Policy, world: Bounded, key: Key) -> dict[str, object]:
    """Measure by how much a difference in state grows under a policy, at states from anywhere."""

    @eqx.filter_jit
    def factors(policy: Policy, keys: Array, steps: int) -> Array:
        def later(state: State) -> State:
            def advance(state: State, _: None) -> tuple[State, None]:
                return world.transition(state, policy(state).mean).mean, None

            return jax.lax.scan(advance, state, None, length=steps)[0]

        def of_state(key: Key) -> Scalar:
            state = world.state_distribution().sample(key=key)
            return jnp.linalg.norm(jax.jacrev(later)(state), ord=2)

        return jnp.percentile(jax.vmap(of_state)(keys), jnp.array([50.0, 95.0]))

    keys = jax.random.split(key, 1024)
    growth = {steps: factors(policy, keys, steps) for steps in _LOOKS}
    return {
        f"{steps} steps": f"{float(median):.3g} ({float(high):.3g})"
        for steps, (median, high) in growth.items()
    }


@eqx.filter_jit
def _height(policy: Policy, world: Bounded, height: Callable[[State], Scalar], key: Key) -> Scalar:
    """Compute the mean height over the last tenth of episodes by the mean action."""

    def episode(key: Key) -> Scalar:
        start_key, path_key = jax.random.split(key)

        def advance(state: State, key: Key) -> tuple[State, Scalar]:
            later = world.transition(state, policy(state).mean).sample(key=key)
            return later, height(later)

        start = world.initial().sample(key=start_key)
        heights = jax.lax.scan(advance, start, jax.random.split(path_key, _NUM_STEPS))[1]
        return heights[-_NUM_STEPS // 10 :].mean()

    return jax.vmap(episode)(jax.random.split(key, _EPISODES)).mean()


def main() -> None:
    options = parser(__doc__, out="gradients", seeds="0-4", episodes=_EPISODES)
    options.add_argument("presets", nargs="*", default=["cart-pole", "double-pendulum"])
    options.add_argument("--updates", type=int, default=4000, help="updates of each policy")
    given = options.parse_args()
    seeds = sweeper(given)
    about = {"updates": given.updates, "budget": given.budget}
    settings = {
        (preset, seed): {"preset": preset, "seed": seed, **about}
        for preset in given.presets
        for seed in seeds.seeds
    }
    for run in finished(seeds.run(settings, train)):
        rows = read_rows(run)
        seeds.write("gradients", rows["gradients"], by=("preset", "rollouts", "seed"))
        seeds.write("adjoints", rows["adjoints"], by=("preset", "policy", "seed"))


if __name__ == "__main__":
    main()
