"""Time an update of Algorithm 1 against PyTorch, and its growth with n, T, M and width."""

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import empowerment as emp
from benchmarks.channel import interleaved, pin, print_ratio
from benchmarks.tables import Table, write_table
from empowerment.policy import Agent, training

_UPDATES = 5
_ROUNDS = 15
_USUAL = {"steps": 5, "horizon": 20, "num_starts": 128, "width": 128, "depth": 2}


def jax_updates(
    *, steps: int, horizon: int, num_starts: int, width: int, depth: int
) -> Callable[[], None]:
    """Build a function that makes `_UPDATES` joint updates of policy, source and planning."""
    world = emp.Bounded(emp.Pendulum())
    keys = jax.random.split(jax.random.key(0), 3)
    sizes: dict[str, Any] = {"width": width, "depth": depth}
    channel = emp.make_channel(world, family="gaussian", steps=steps, **sizes, key=keys[0])
    agent = Agent(emp.Policy(world.states, 1, **sizes, key=keys[1]), channel)
    state = training.init(agent, world, num_starts=num_starts, key=keys[2])
    ones = jnp.ones(_UPDATES)

    def run() -> None:
        nonlocal state
        state, info = training.step(
            state,
            world,
            betas=50 * ones,
            discounts=ones,
            shares=0 * ones,
            learning_rates=1e-3 * ones,
            num_starts=num_starts,
            horizon=horizon,
        )
        info.bound.block_until_ready()

    return run


def torch_updates(
    *, steps: int, horizon: int, num_starts: int, width: int, depth: int
) -> Callable[[], None]:
    """Build the same in idiomatic PyTorch: modules, autograd, Adam."""
    import torch  # pyright: ignore[reportMissingImports]
    from torch import nn  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
    torch.manual_seed(0)

    def network(in_size: int, out_size: int) -> Any:
        layers: list[Any] = []
        for _ in range(depth):
            layers += [nn.Linear(in_size, width), nn.Tanh()]
            in_size = width
        return nn.Sequential(*layers, nn.Linear(in_size, out_size))

    def features(state: Any) -> Any:
        angle, velocity = state.unbind(-1)
        return torch.stack([angle.cos(), angle.sin(), velocity / 4], dim=-1)

    def transition(state: Any, action: Any) -> Any:
        angle, velocity = state.unbind(-1)
        drive = 15 * angle.sin() + 3 * (2 * torch.tanh(action) - 0.05 * velocity)
        velocity = velocity + drive * 0.05
        angle = angle + velocity * 0.05
        return torch.stack([angle, velocity.clamp(-8, 8)], dim=-1)

    def gaussian(output: Any) -> Any:
        mean, log_scale, below = output.split([steps, steps, steps * (steps - 1) // 2], dim=-1)
        factor = torch.diag_embed(log_scale.exp())
        rows, columns = torch.tril_indices(steps, steps, -1)
        factor[..., rows, columns] = below
        return torch.distributions.MultivariateNormal(mean, scale_tril=factor, validate_args=False)

    out_size = 2 * steps + steps * (steps - 1) // 2
    policy, source, planning = network(3, 2), network(3, out_size), network(5, out_size)
    parts = [policy, source, planning]
    optimiser = torch.optim.Adam([p for part in parts for p in part.parameters()], lr=1e-3)
    limits = torch.tensor([math.pi, 8.0])

    def mean_observation(state: Any, plan: Any) -> Any:
        for action in plan.unbind(-1):
            state = transition(state, action)
        return state

    def run() -> None:
        for _ in range(_UPDATES):
            state = (2 * torch.rand(num_starts, 2) - 1) * limits
            states, divergence = [state], 0.0
            for _ in range(horizon):
                mean, spread = policy(features(state)).unbind(-1)
                scale = torch.exp(-4 + 5 * torch.sigmoid(spread + math.log(4)))
                action = mean + scale * torch.randn_like(mean)
                divergence = divergence + (0.5 * (mean**2 + scale**2 - 1) - scale.log()).mean()
                state = transition(state, action)
                states.append(state)
            along = torch.cat(states)
            inputs = features(along)
            of_source = gaussian(source(inputs))
            plan = of_source.rsample()
            still = mean_observation(along, torch.zeros_like(plan))
            successor = mean_observation(along, plan)
            successor = successor + 0.05 * torch.randn_like(successor)
            of_planning = gaussian(planning(torch.cat([inputs, 4 * (successor - still)], dim=-1)))
            bound = (of_planning.log_prob(plan) - of_source.log_prob(plan)).mean()
            loss = divergence / horizon / 50 - bound
            optimiser.zero_grad()
            loss.backward()
            for part in parts:
                nn.utils.clip_grad_norm_(part.parameters(), 1.0)
            optimiser.step()

    return run


def compare() -> None:
    """Compare with PyTorch at two depths."""
    for depth in (2, 4):
        sizes = {**_USUAL, "depth": depth}
        ours = jax_updates(**sizes)
        try:
            theirs = torch_updates(**sizes)
        except ImportError:
            theirs = None
        own, other = interleaved(ours, theirs)
        print(f"Algorithm 1, M 128, T 20, n 5, {depth} layers of 128, one core, interleaved")
        print_ratio(own / _UPDATES, None if other is None else other / _UPDATES)


def measure_growth() -> Table:
    """Time an update with one size changed at a time.

    It is processor time: on one core, what an update takes on an idle machine.
    """
    rows: Table = []
    for name, values in {
        "steps": (1, 2, 5, 10, 20),
        "horizon": (10, 20, 40, 80),
        "num_starts": (64, 128, 256, 512, 1024),
        "width": (32, 64, 128, 256),
    }.items():
        runs = {value: jax_updates(**{**_USUAL, name: value}) for value in values}
        best = dict.fromkeys(values, math.inf)
        for _ in range(_ROUNDS):  # In turns, so that all share the load of the machine.
            for value, run in runs.items():
                start = time.process_time()
                run()
                best[value] = min(best[value], (time.process_time() - start) / _UPDATES)
        for before, value in zip((None, *values), values, strict=False):
            growth = ""
            if before is not None:
                growth = f"{best[value] / best[before]:.2f} for {value / before:g}"
            rows.append(
                {
                    "what": name,
                    "value": value,
                    "update": f"{1e3 * best[value]:.1f} ms",
                    "growth": growth,
                }
            )
            print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--growth", action="store_true", help="write the growth to docs/results.md")
    options = parser.parse_args()
    pin()
    if options.growth:
        write_table("growth", measure_growth())
    else:
        compare()


if __name__ == "__main__":
    main()
