"""Evaluate learnt models: prediction errors, an ablation, and the speed of training.

PyTorch is only needed for the speed and is not in the lock file; a CPU build is enough.
"""

import contextlib
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import gymnasium
import jax
import jax.numpy as jnp

from benchmarks.channel import interleaved, pin
from benchmarks.seeds import finished, keep_rows, parser, read_rows, slug, sweeper
from benchmarks.tables import write_table
from empowerment.data import Trajectories, collect
from empowerment.environments import ENVIRONMENTS, PENDULUM_ANYWHERE
from empowerment.model import (
    DVBF,
    ModelSettings,
    Scaling,
    Sequences,
    dvbf,
    evaluate_model,
    training as model_training,
)
from empowerment.runs import PRESETS, fit_model
from empowerment.runs.experiment import smoke_model
from empowerment.sweep.jobs import Job, Outcome

_HORIZONS = (1, 10, 20, 30)
_BALL = ModelSettings(latent_size=32, outlier_probability=0.0)
_SYSTEMS: dict[str, tuple[str, int, ModelSettings]] = {
    "ball, 32 axes": (ENVIRONMENTS["ball"], 20_000, _BALL),
    "ball, 6 axes": (ENVIRONMENTS["ball"], 20_000, replace(_BALL, latent_size=6)),
    "ball, 32 axes, as printed": (ENVIRONMENTS["ball"], 20_000, replace(_BALL, as_published=True)),
    "pendulum": (PENDULUM_ANYWHERE, 10_000, PRESETS["pendulum-learnt"].experiment.model),
}
_ABLATED: dict[str, Callable[[], Any]] = {
    "all": contextlib.nullcontext,
    "no warm-up": lambda: patch.object(model_training, "_FIRST_WEIGHT", 1.0),
    "no prediction": lambda: patch.object(model_training, "_PREDICTION", 0.0),
    "slow noise": lambda: patch.object(dvbf, "_FAST", 1.0),
    "no clipping": lambda: patch.object(model_training, "_CLIP", 1e9),
    "no early stop": lambda: patch.object(model_training, "_PATIENCE", 1e9),
}
"""What training needs beyond the paper, left out one at a time."""

_LONG_STEPS = 40
"""Length of evaluation episodes of the pendulum, whose training episodes are shorter."""

_EVALUATION_STEPS = 5_000
_UPDATES = 20
_SIZES = {"batch": 128, "length": 20, "observed": 44, "latent": 16, "width": 128}


def train(job: Job) -> Outcome:
    """Measure a model with a seed, in a worker of the sweep."""
    given = dict(job.settings)
    measure = predicted if given.pop("what") == "prediction" else ablated
    return keep_rows(job, lambda: {"rows": [measure(**given)]})


def predicted(system: str, seed: int, budget: str) -> dict[str, object]:
    """Evaluate a model on fresh data."""
    environment, settings, data = _given(system, seed, budget)
    start = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        fitted = fit_model(data, settings, folder=Path(folder) / "model", seed=seed)
    seconds = time.process_time() - start
    fresh, _ = collect(_long(environment), steps=_EVALUATION_STEPS, seed=1000 + seed)
    errors = evaluate_model(fitted.model, fitted.train, fresh, horizons=_HORIZONS, seed=seed)
    row: dict[str, object] = {"system": system, "seed": seed}
    for horizon, error in zip(_HORIZONS, errors.model, strict=True):
        row[f"h = {horizon}"] = f"{error:.5f}"
    row["persistence at 20"] = f"{errors.persistence[2]:.2f}"
    row["linear at 20"] = f"{errors.linear[2]:.3f}"
    row["in 90 % intervals"] = " ".join(f"{share:.2f}" for share in errors.coverage)
    row["seconds"] = round(seconds)
    return row


def _given(system: str, seed: int, budget: str) -> tuple[str, ModelSettings, Trajectories]:
    """Return environment, settings and data of a system; both are few if the budget is tiny."""
    environment, steps, settings = _SYSTEMS[system]
    if budget == "smoke":
        steps, settings = 1000, smoke_model(settings)
    return environment, settings, collect(environment, steps=steps, seed=seed)[0]


def _long(environment: str) -> Callable[[], gymnasium.Env]:
    """Return a factory of the environment with episodes long enough for all horizons."""
    steps = _LONG_STEPS if environment == PENDULUM_ANYWHERE else None
    return lambda: gymnasium.make(environment, max_episode_steps=steps)


def ablated(name: str, seed: int, budget: str) -> dict[str, object]:
    """Leave out one thing, and evaluate a model of a ball on fresh data."""
    environment, settings, data = _given("ball, 32 axes", seed, budget)
    with tempfile.TemporaryDirectory() as folder, _ABLATED[name]():
        fitted = fit_model(data, settings, folder=Path(folder) / "model", seed=seed)
        fresh, _ = collect(environment, steps=_EVALUATION_STEPS, seed=1000 + seed)
        errors = evaluate_model(fitted.model, fitted.train, fresh, horizons=(1, 10, 30), seed=seed)
    updates, last = fitted.about["history"][-1]
    row: dict[str, object] = {"left out": name, "seed": seed}
    row |= {f"h = {h}": f"{e:.5f}" for h, e in zip((1, 10, 30), errors.model, strict=True)}
    row["held out / nats"] = f"{last['validation']:.2f}"
    row["updates"] = updates
    return row


def jax_updates() -> Callable[[], None]:
    """Build a function that makes `_UPDATES` updates."""
    one = jnp.ones(_SIZES["observed"])
    units = Scaling(0 * one, one), Scaling(jnp.zeros(2), jnp.ones(2))
    model = DVBF(*units, latent_size=_SIZES["latent"], width=_SIZES["width"], key=jax.random.key(0))
    keys = jax.random.split(jax.random.key(1))
    data = Sequences(
        jax.random.normal(keys[0], (5000, _SIZES["observed"])),
        jax.random.uniform(keys[1], (5000, 2), minval=-1.0),
        jnp.arange(4000),
        _SIZES["length"],
    )
    state = model_training.init(model, key=jax.random.key(2))
    rates = jnp.full(_UPDATES, 1e-3)

    def run() -> None:
        nonlocal state
        state, info = model_training.step(
            state,
            data,
            weights=jnp.ones(_UPDATES),
            learning_rates=rates,
            batch_size=_SIZES["batch"],
        )
        info.elbo.block_until_ready()

    return run


def torch_updates() -> Callable[[], None]:
    """Build the same in idiomatic PyTorch: modules, autograd, Adam."""
    import torch  # pyright: ignore[reportMissingImports]
    import torch.nn.functional as F  # pyright: ignore[reportMissingImports]  # noqa: N812
    from torch import nn  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
    torch.manual_seed(0)
    size, observed, width = _SIZES["latent"], _SIZES["observed"], _SIZES["width"]

    def network(in_size: int, out_size: int) -> Any:
        return nn.Sequential(nn.Linear(in_size, width), nn.Tanh(), nn.Linear(width, out_size))

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.recognition = network(observed, 2 * size)
            self.start = network(size, size)
            self.transition = network(size + 2, 3 * size)
            self.measurement = network(observed, 2 * size)
            self.decoder = network(size, observed)
            self.noise = nn.Parameter(torch.zeros(observed))
            self.drift = nn.Parameter(torch.zeros(observed))

        def step(self, state: Any, action: Any) -> Any:
            change, prior, trust = self.transition(torch.cat([state, action], -1)).chunk(3, -1)
            return state + change, F.softplus(prior) + 1e-3, F.softplus(trust) + 1e-3

        def loss(self, observations: Any, actions: Any) -> Any:
            length = observations.shape[1]
            mean, raw = self.recognition(observations[:, 0]).chunk(2, -1)
            scale = F.softplus(raw) + 1e-3
            state = self.start(mean + scale * torch.randn_like(mean))
            divergence = _divergence(mean, scale)
            measured, raw = self.measurement(observations).chunk(2, -1)
            sight = F.softplus(raw) + 1e-3
            blind, switch = state, torch.randint(0, length // 2, (len(state), 1))
            states, blinds = [state], []
            for time_ in range(1, length):
                mean, prior, trust = self.step(state, actions[:, time_ - 1])
                blind = self.step(blind, actions[:, time_ - 1])[0]
                share = trust**2 / (trust**2 + sight[:, time_] ** 2)
                belief = mean + share * (measured[:, time_] - mean)
                spread = share.sqrt() * sight[:, time_]
                state = belief + spread * torch.randn_like(belief)
                divergence = divergence + _divergence((belief - mean) / prior, spread / prior)
                blind = torch.where(time_ > switch, blind, state)
                states.append(state)
                blinds.append(blind)
            filtered = torch.distributions.Normal(
                self.decoder(torch.stack(states, 1)), 1e-3 + (10 * self.noise).exp()
            )
            predicted = torch.distributions.Normal(
                self.decoder(torch.stack(blinds, 1)), 1e-3 + (10 * self.drift).exp()
            )
            past = torch.arange(1, length)[None] > switch
            prediction = (predicted.log_prob(observations[:, 1:]).sum(-1) * past).sum(1)
            gain = filtered.log_prob(observations).sum((1, 2)) - divergence + 0.2 * prediction
            return -gain.mean() / length

    def _divergence(mean: Any, scale: Any) -> Any:
        return (0.5 * (mean**2 + scale**2 - 1) - scale.log()).sum(-1)

    model = Model()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    rows, acts = torch.randn(5000, observed), 2 * torch.rand(5000, 2) - 1

    def run() -> None:
        for _ in range(_UPDATES):
            chosen = torch.randint(0, 4000, (_SIZES["batch"], 1)) + torch.arange(_SIZES["length"])
            optimiser.zero_grad()
            model.loss(rows[chosen], acts[chosen[:, :-1]]).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
            optimiser.step()

    return run


def speed() -> None:
    """Time both in turns, on one core."""
    pin()
    own, other = interleaved(jax_updates(), torch_updates())
    assert other is not None
    row: dict[str, object] = {
        **_SIZES,
        "ours / ms": f"{1e3 * own / _UPDATES:.1f}",
        "PyTorch eager / ms": f"{1e3 * other / _UPDATES:.1f}",
        "ratio": f"{other / own:.1f}",
    }
    write_table("model-speed", [row])


def main() -> None:
    options = parser(__doc__, out="models", seeds="0-2", episodes=0)
    choices = ("prediction", "ablation", "speed")
    options.add_argument("what", choices=choices, nargs="?", default="speed")
    options.add_argument("--systems", nargs="+", choices=_SYSTEMS, default=list(_SYSTEMS))
    given = options.parse_args()
    if given.what == "speed":
        speed()
        return
    seeds = sweeper(given)
    column, key, names = "system", "system", given.systems
    if given.what == "ablation":
        column, key, names = "left out", "name", list(_ABLATED)
    shared = {"what": given.what, "budget": given.budget}
    settings = {
        (f"{given.what}-{slug(name)}", seed): {**shared, key: name, "seed": seed}
        for name in names
        for seed in seeds.seeds
    }
    rows = [row for run in finished(seeds.run(settings, train)) for row in read_rows(run)["rows"]]
    seeds.write(given.what, rows, by=(column, "seed"))


if __name__ == "__main__":
    main()
