"""Channel families: named combinations of source and planning."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
from jaxtyping import Array, Float

from empowerment.channel.base import AbstractChannel, Inputs
from empowerment.channel.bound import Channel
from empowerment.channel.codebook import Codebook
from empowerment.channel.flow import Coupling, couplings
from empowerment.channel.planning import FlowPlanning, StepwisePlanning
from empowerment.channel.source import DiagonalSource, FlowSource, IntentSource
from empowerment.networks import Network, full_size, network
from empowerment.types import Key


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
    plans: Float[Array, "codes steps action"] | None = None,
    has_all_plans: bool = False,
    key: Key,
) -> Codebook:
    """Build a codebook.

    Args:
        inputs: The scaling of the network's inputs.
        sizes: The sizes of its network.
        num_codes: The number of codes.
        intent_size: The number of axes of the place of a code.
        reader: None if the density of the successor is known.
        plans: The plan of each code where actions are discrete.
        has_all_plans: Whether these are all that there are.
        key: Consumed.
    """
    return Codebook(
        inputs,
        steps=sizes.steps,
        action_size=sizes.action,
        intent_size=intent_size,
        num_codes=num_codes,
        plans=plans,
        has_all_plans=has_all_plans,
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
