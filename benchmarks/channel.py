"""Time an update of a channel in turns with the same computation in PyTorch.

PyTorch is only needed here and is not in the lock file; a CPU build is enough.
"""

import math
import os
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import empowerment as emp
from empowerment.channel import training
from empowerment.channel.codebook import Codebook

_ROUNDS = 7
_UPDATES = 20
_BATCH = 32
_WIDTH = 128
_STEPS = 5


def pin() -> None:
    """Pin the process to one core, so that single threads are compared."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def jax_updates() -> tuple[Callable[[], None], int]:
    """Build a function that makes `_UPDATES` updates; return it and the number of codes."""
    world = emp.Bounded(emp.Pendulum())
    channel = emp.make_channel(world, family="codebook", steps=_STEPS, key=jax.random.key(0))
    assert isinstance(channel, Codebook)
    state = training.init(channel, key=jax.random.key(1))
    rates = jnp.full(_UPDATES, 3e-3)

    def run() -> None:
        nonlocal state
        state, info = training.step(state, world, learning_rates=rates, batch_size=_BATCH)
        info.batch_bound.block_until_ready()

    return run, len(channel.intents)


def torch_updates(num_codes: int) -> Callable[[], None]:
    """Build the same in idiomatic PyTorch: modules, autograd, Adam."""
    import torch  # pyright: ignore[reportMissingImports]
    from torch import nn  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
    torch.manual_seed(0)

    class Channel(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            side = round(math.sqrt(num_codes))
            ticks = (torch.arange(side) + 0.5) / side
            lattice = torch.cartesian_prod(ticks, ticks)
            self.intents = nn.Parameter(math.sqrt(12) * (lattice - 0.5))
            self.from_state = nn.Linear(3, _WIDTH)
            self.from_intent = nn.Linear(2, _WIDTH, bias=False)
            self.hidden = nn.Linear(_WIDTH, _WIDTH)
            self.head = nn.Linear(_WIDTH, _STEPS + 1)

        def forward(self, state: Any) -> Any:
            angle, velocity = state.unbind(-1)
            features = torch.stack([angle.cos(), angle.sin(), velocity / 4], dim=-1)
            near = self.from_state(features)[:, None]
            hidden = torch.tanh(near + self.from_intent(self.intents))
            output = self.head(torch.tanh(self.hidden(hidden)))
            return output[..., :-1], output[..., -1].log_softmax(-1)

    def mean_observation(state: Any, plan: Any) -> Any:
        angle, velocity = (part[:, None].expand(plan.shape[:2]) for part in state.unbind(-1))
        for torque in (2 * torch.tanh(plan)).unbind(-1):
            drive = 15 * angle.sin() + 3 * (torque - 0.05 * velocity)
            velocity = velocity + drive * 0.05
            angle = angle + velocity * 0.05
            velocity = velocity.clamp(-8, 8)
        return torch.stack([angle, velocity], dim=-1) / 0.05

    model = Channel()
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    scale = torch.tensor([math.pi, 8.0])

    def run() -> None:
        for _ in range(_UPDATES):
            state = (2 * torch.rand(_BATCH, 2) - 1) * scale
            plans, log_weights = model(state)
            means = mean_observation(state, plans)
            observed = means + torch.randn_like(means)
            squares = observed.square().sum(-1)[:, :, None] + means.square().sum(-1)[:, None]
            distance = squares - 2 * observed @ means.mT
            log_mixture = torch.logsumexp(log_weights[:, None] - 0.5 * distance, dim=-1)
            own = -0.5 * torch.diagonal(distance, dim1=1, dim2=2)
            loss = -(log_weights.exp() * (own - log_mixture)).sum(-1).mean()
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()

    return run


def sgemm_rate() -> float:
    """Measure the floating-point operations per second of a large matrix product."""
    matrix = jnp.asarray(np.random.default_rng(0).normal(size=(1024, 1024)), jnp.float32)
    product = jax.jit(lambda a: a @ a)
    product(matrix).block_until_ready()
    start = time.perf_counter()
    for _ in range(10):
        product(matrix).block_until_ready()
    return 10 * 2 * 1024**3 / (time.perf_counter() - start)


def interleaved(
    ours: Callable[[], None], theirs: Callable[[], None] | None
) -> tuple[float, float | None]:
    """Time both in turns; return the median seconds of a call."""
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    for run in (ours, theirs):
        if run is not None:
            run()
    for _ in range(_ROUNDS):
        for name, run in (("ours", ours), ("theirs", theirs)):
            if run is not None:
                start = time.perf_counter()
                run()
                times[name].append(time.perf_counter() - start)
    other = float(np.median(times["theirs"])) if times["theirs"] else None
    return float(np.median(times["ours"])), other


def print_ratio(ours: float, theirs: float | None) -> None:
    """Print the time of an update of both, and their ratio."""
    print(f"  JAX      {1e3 * ours:7.2f} ms, {1 / ours:6.1f} updates per second")
    if theirs is None:
        print("  PyTorch is not installed; to compare, run pip install torch==2.13.0")
    else:
        print(f"  PyTorch  {1e3 * theirs:7.2f} ms, {1 / theirs:6.1f} updates per second")
        print(f"  ratio    {theirs / ours:.2f}", flush=True)


def main() -> None:
    pin()
    ours, num_codes = jax_updates()
    try:
        theirs = torch_updates(num_codes)
    except ImportError:
        theirs = None
    own, other = interleaved(ours, theirs)
    own, other = own / _UPDATES, None if other is None else other / _UPDATES
    print(
        f"channel update, {_BATCH} states, {num_codes} codes, n = {_STEPS}, one core, interleaved"
    )
    print_ratio(own, other)
    # Forward once and backward twice through the two matrices that act on every code.
    products = 3 * 2 * _BATCH * num_codes * _WIDTH * (_WIDTH + _STEPS + 1)
    print(f"  matrix products alone: {100 * products / own / sgemm_rate():.0f} % of the sgemm rate")


if __name__ == "__main__":
    main()
