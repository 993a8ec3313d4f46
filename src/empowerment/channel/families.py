"""Channel families: named combinations of source and planning."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from empowerment.channel.base import AbstractChannel, Inputs, fit_inputs
from empowerment.channel.bound import Channel
from empowerment.channel.codebook import Codebook
from empowerment.channel.codebook_size import count_codes, count_read_codes, first_reader
from empowerment.channel.evaluation import empowerment_at
from empowerment.channel.flow import Coupling, couplings
from empowerment.channel.planning import FlowPlanning, StepwisePlanning
from empowerment.channel.source import DiagonalSource, FlowSource, IntentSource
from empowerment.channel.training import sample_states, train_channel
from empowerment.networks import Network, full_size, network
from empowerment.types import Action, Key, State
from empowerment.worlds import AbstractWorld, Bounded, has_closed_form_density

_TRIAL_UPDATES = 600
"""Updates after which families are compared."""

_NUM_JUDGED = 64
"""States at which they are compared."""

_NUM_TRIALS = 256
"""Random plans on which a world is validated before training."""


@dataclass(frozen=True)
class Sizes:
    """The sizes of the networks of a channel.

    Attributes:
        steps: The number of actions in a plan.
        action: The number of axes of an action.
        observation: The number of perceived axes.
        width: The size of a hidden layer.
        depth: The number of hidden layers.
    """

    steps: int
    action: int
    observation: int
    width: int = 128
    depth: int = 2

    @property
    def plan(self) -> int:
        """The number of axes of a plan."""
        return self.steps * self.action

    def network(self, in_size: int, out_size: int, *, key: Key) -> Network:
        """Build a network of this width and depth."""
        return network(in_size, out_size, width=self.width, depth=self.depth, key=key)

    def couplings(self, size: int, condition_size: int, *, key: Key) -> Coupling:
        """Build coupling layers whose networks have this width and depth."""
        return couplings(size, condition_size, width=self.width, depth=self.depth, key=key)


@runtime_checkable
class Family(Protocol):
    """A factory of untrained channels."""

    def __call__(self, inputs: Inputs, sizes: Sizes, *, key: Key) -> AbstractChannel:
        """Build an untrained channel."""
        ...


def paper(inputs: Inputs, sizes: Sizes, *, key: Key) -> Channel:
    """Build the paper's channel: diagonal source; planning sees the previous action only.

    Karl et al. (2018), Sec. 2.5 and App. A.3.1.
    """
    return _stepwise(inputs, sizes, 1, key)


def autoregressive(inputs: Inputs, sizes: Sizes, *, key: Key) -> Channel:
    """Build a channel with a diagonal source; planning sees all previous actions."""
    return _stepwise(inputs, sizes, sizes.steps, key)


def _stepwise(inputs: Inputs, sizes: Sizes, num_seen: int, key: Key) -> Channel:
    source_key, planning_key = jax.random.split(key)
    in_size = inputs.size + sizes.observation + sizes.plan
    networks = eqx.filter_vmap(lambda key: sizes.network(in_size, 2 * sizes.action, key=key))(
        jax.random.split(planning_key, sizes.steps)
    )
    source = sizes.network(inputs.size, 2 * sizes.plan, key=source_key)
    return Channel(
        source=DiagonalSource(source, sizes.steps),
        planning=StepwisePlanning(networks, num_seen, sizes.steps),
        inputs=inputs,
        steps=sizes.steps,
    )


def gaussian(inputs: Inputs, sizes: Sizes, *, key: Key) -> Channel:
    """Build a channel with full Gaussians for source and planning."""
    source_key, planning_key = jax.random.split(key)
    in_size, out_size = inputs.size + sizes.observation, full_size(sizes.plan)
    source = sizes.network(inputs.size, out_size, key=source_key)
    planning = sizes.network(in_size, out_size, key=planning_key)
    return Channel(
        source=FlowSource(source, None, sizes.plan, sizes.steps),
        planning=FlowPlanning(planning, None, sizes.plan),
        inputs=inputs,
        steps=sizes.steps,
    )


def flow(inputs: Inputs, sizes: Sizes, *, key: Key) -> Channel:
    """Build a channel with spline coupling flows for source and planning."""
    gaussian_key, source_key, planning_key = jax.random.split(key, 3)
    layers = (
        sizes.couplings(sizes.plan, inputs.size, key=source_key),
        sizes.couplings(sizes.plan, inputs.size + sizes.observation, key=planning_key),
    )
    return eqx.tree_at(
        lambda channel: (channel.source.layers, channel.planning.layers),
        gaussian(inputs, sizes, key=gaussian_key),
        layers,
        is_leaf=lambda leaf: leaf is None,
    )


def intent(inputs: Inputs, sizes: Sizes, *, key: Key) -> Channel:
    """Build a channel with a source of intents; planning is a flow over the intent."""
    source_key, planning_key, layers_key = jax.random.split(key, 3)
    size = min(sizes.observation, sizes.plan)
    in_size = inputs.size + sizes.observation
    source = sizes.network(inputs.size + size, sizes.plan, key=source_key)
    planning = sizes.network(in_size, full_size(size), key=planning_key)
    layers = sizes.couplings(size, in_size, key=layers_key)
    return Channel(
        source=IntentSource(source, size, sizes.steps),
        planning=FlowPlanning(planning, layers, size),
        inputs=inputs,
        steps=sizes.steps,
    )


def codebook(
    inputs: Inputs,
    sizes: Sizes,
    *,
    num_codes: int,
    intent_size: int,
    reader: Float[Array, "observation observation"] | None,
    key: Key,
) -> Codebook:
    """Build a codebook; `reader` is None if the density of the successor is known."""
    return Codebook(
        inputs,
        steps=sizes.steps,
        action_size=sizes.action,
        intent_size=intent_size,
        num_codes=num_codes,
        reader=reader,
        width=sizes.width,
        key=key,
    )


FAMILIES: dict[str, Family] = {
    "paper": paper,
    "autoregressive": autoregressive,
    "gaussian": gaussian,
    "flow": flow,
    "intent": intent,
}
"""The families with learnt planning, by name."""


def make_channel(
    world: AbstractWorld,
    *,
    family: str,
    steps: int,
    width: int = 128,
    depth: int = 2,
    key: Key,
) -> AbstractChannel:
    """Build an untrained channel for a world.

    Args:
        world: A world whose actions live before the squash (`Bounded`).
        family: A name of `FAMILIES`; or `codebook`; or `auto`: codebook where the density of
            the perceived successor is known in closed form, elsewhere the one of codebook and
            intent whose bound is larger after a short training of both.
        steps: The number of actions in a plan.
        width: The size of hidden layers.
        depth: The number of hidden layers; ignored by a codebook.
        key: Consumed.

    Returns:
        The channel, with input scaling fitted to the world.
    """
    names = [*FAMILIES, "codebook", "auto"]
    if family not in names:
        raise ValueError(f"Expected the family to be one of {', '.join(names)}; got {family!r}.")
    if steps < 1:
        raise ValueError(f"Expected steps to be at least 1; got {steps}.")
    is_bounded = isinstance(world, Bounded)
    if not is_bounded:
        raise ValueError(
            "Expected a world whose actions live before the squash; got "
            f"{type(world).__name__}. Wrap it: Bounded(world)."
        )
    if not world.states.finite:
        raise ValueError(
            "Expected the region of states to be finite, to train in all of it; got "
            f"{world.states.low.tolist()} to {world.states.high.tolist()}."
        )
    trial_key, density_key, inputs_key, channel_key = jax.random.split(key, 4)
    _validate(world, steps, trial_key)
    known = has_closed_form_density(world, steps=steps, key=density_key)
    inputs = fit_inputs(world, steps=steps, key=inputs_key)
    sizes = Sizes(steps, world.actions.size, inputs.whitener.shape[0], width, depth)
    if family in FAMILIES:
        return _compiled(FAMILIES[family], inputs, sizes, channel_key)
    made = _compiled(_make_codebook(world, inputs, sizes, known), inputs, sizes, channel_key)
    if family == "codebook" or known:
        return made
    return _tighter((made, _compiled(intent, inputs, sizes, channel_key)), world, key=trial_key)


def _tighter(channels: tuple[AbstractChannel, ...], world: Bounded, *, key: Key) -> AbstractChannel:
    """Return the channel whose bound is the largest after a short training of each."""
    train_key, state_key, draw_key = jax.random.split(key, 3)
    states = sample_states(world, None, _NUM_JUDGED, key=state_key)
    keys = jax.random.split(draw_key, _NUM_JUDGED)

    def bound(channel: AbstractChannel) -> float:
        trained = train_channel(channel, world, num_updates=_TRIAL_UPDATES, key=train_key).model
        return float(empowerment_at(trained, world, states, keys).mean())

    return max(channels, key=bound)


@eqx.filter_jit
def _compiled(family: Family, inputs: Inputs, sizes: Sizes, key: Key) -> AbstractChannel:
    """Initialise all parameters in one compiled call; op by op it takes seconds."""
    return family(inputs, sizes, key=key)


def _make_codebook(world: Bounded, inputs: Inputs, sizes: Sizes, known: bool) -> Family:  # noqa: FBT001
    """Choose the number of codes and the dimension of intents of a codebook."""
    if known and sizes.observation <= 2:
        intent_size = min(sizes.observation, sizes.plan)
        num_codes = count_codes(world, inputs, sizes.steps)
    else:
        intent_size, num_codes = count_read_codes(world, sizes.steps)
    reader = None if known else first_reader(world, sizes.steps)
    return partial(codebook, num_codes=num_codes, intent_size=intent_size, reader=reader)


def _validate(world: Bounded, steps: int, key: Key) -> None:
    """Check that rollouts of random plans at random states are finite."""

    def is_finite(state: State, key: Key) -> Bool[Array, ""]:
        def step(state: State, action: Action) -> tuple[State, Bool[Array, ""]]:
            successor = world.transition(state, action)
            emission = world.emission(successor.mean)
            finite = jax.tree.map(lambda a: jnp.all(jnp.isfinite(a)), (successor, emission))
            return successor.mean, jnp.stack(jax.tree.leaves(finite)).all()

        plan = jax.random.normal(key, (steps, world.actions.size))
        return jax.lax.scan(step, state, plan)[1].all()

    @jax.jit
    def trials(key: Key) -> tuple[Float[Array, "trials state"], Bool[Array, " trials"]]:
        state_key, plan_key = jax.random.split(key)
        region = world.state_distribution()
        states = jax.vmap(lambda key: region.sample(key=key))(
            jax.random.split(state_key, _NUM_TRIALS)
        )
        return states, jax.vmap(is_finite)(states, jax.random.split(plan_key, _NUM_TRIALS))

    states, finite = trials(key)
    if not bool(finite.all()):
        state = states[jnp.argmin(finite)]
        raise ValueError(
            "Expected successors to be finite everywhere in the region; got one that is not "
            f"within {steps} steps of state {state.tolist()}."
        )


def channel_like(
    world: AbstractWorld,
    arrays: Mapping[str, np.ndarray],
    *,
    family: str,
    steps: int,
    width: int = 128,
    depth: int = 2,
) -> AbstractChannel:
    """Return the shapes of a stored channel, to load it into; nothing is computed."""
    size = arrays[".inputs.whitener"].shape[0]
    inputs = Inputs(world.states, jnp.eye(size))
    sizes = Sizes(steps, world.actions.size, size, width, depth)
    make = FAMILIES.get("intent" if family == "auto" else family, intent)
    if ".intents" in arrays:
        num_codes, intent_size = arrays[".intents"].shape
        reader = jnp.eye(size) if ".reader" in arrays else None
        make = partial(codebook, num_codes=num_codes, intent_size=intent_size, reader=reader)
    return eqx.filter_eval_shape(make, inputs, sizes, key=jax.random.key(0))
