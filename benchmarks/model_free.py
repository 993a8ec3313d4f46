"""Empowerment without a model, by the method of Mohamed and Rezende (2015): a baseline."""

import equinox as eqx
import jax

from empowerment import optimise
from empowerment.channel import Channel, make_channel, sample_states
from empowerment.networks import Network, network
from empowerment.types import Key, Scalar, State
from empowerment.worlds import AbstractWorld, perceive

_LEARNING_RATE = 1e-3


class ModelFree(eqx.Module):
    r"""The networks of Mohamed and Rezende (2015).

    Attributes:
        channel: Source $\omega$ and planning $q$.
        normaliser: The network $\psi(z)$; it becomes empowerment times `beta`.
    """

    channel: Channel
    normaliser: Network


def model_free_loss(
    model: ModelFree, world: AbstractWorld, state: State, *, beta: float = 1.0, key: Key
) -> tuple[Scalar, Scalar]:
    r"""Evaluate the two losses of Mohamed and Rezende (2015) from one sample.

    Planning by maximum likelihood, $-\ln q(u|z, x')$; the source by regression,
    $(\beta \ln q(u|z, x') - \ln \omega(u|z) - \psi(z))^2$ with $q$ held fixed. Plans are
    sampled from the source, and no gradient passes through the sampling or the world.

    Args:
        model: Source, planning and normaliser.
        world: A world whose actions live before the squash; it is only sampled.
        state: The state $z$.
        beta: Inverse temperature.
        key: Consumed.

    Returns:
        The sum of both losses, and an unbiased estimate of the bound.
    """
    channel = model.channel
    code_key, future_key = jax.random.split(key)
    features = channel.inputs.features(state)
    source = channel.source(features)
    code = jax.lax.stop_gradient(source.sample(key=code_key))
    successor = perceive(world, state, channel.source.plan(features, code), key=future_key)
    relative = channel.inputs.relative(world, state, successor, channel.steps)
    log_planning = channel.planning(features, jax.lax.stop_gradient(relative)).log_prob(code)
    log_source = source.log_prob(code)
    target = beta * jax.lax.stop_gradient(log_planning)
    regression = (target - log_source - model.normaliser(features)[0]) ** 2
    return regression - log_planning, log_planning - log_source


def train_model_free(
    world: AbstractWorld,
    *,
    steps: int,
    num_updates: int,
    batch_size: int,
    family: str = "paper",
    beta: float = 1.0,
    key: Key,
) -> Channel:
    r"""Train a channel as Mohamed and Rezende (2015) do, without gradients of the world.

    For `beta` one the source moves towards $\omega(u|z) \propto \exp E_{x'} \ln q(u|z, x')$, a step
    of Blahut and Arimoto's iteration.

    Deviation: they learn from pixels and one stream of experience; here states are
    sampled from the whole region, as for the other channels, so that only the learning rule
    differs.

    Args:
        world: A world whose actions live before the squash (`Bounded`); it is only sampled.
        steps: Number of actions in a plan.
        num_updates: Number of updates.
        batch_size: Number of states in an update.
        family: A family whose source is a density of plans: not `intent`, not `codebook`.
        beta: Inverse temperature.
        key: Consumed.

    Returns:
        The trained channel.
    """
    channel_key, normaliser_key, train_key = jax.random.split(key, 3)
    if family not in ("paper", "autoregressive", "gaussian", "flow"):
        raise ValueError(
            "Expected a family whose source is a density of plans (paper, autoregressive, "
            f"gaussian, flow); got {family!r}."
        )
    if num_updates < 1 or batch_size < 1:
        raise ValueError(
            "Expected num_updates and batch_size to be at least 1; got "
            f"{num_updates} and {batch_size}."
        )
    channel = make_channel(world, family=family, steps=steps, key=channel_key)
    assert isinstance(channel, Channel)
    normaliser = network(channel.inputs.size, 1, width=128, depth=2, key=normaliser_key)
    return _train(ModelFree(channel, normaliser), world, num_updates, batch_size, beta, train_key)


@eqx.filter_jit
def _train(
    model: ModelFree,
    world: AbstractWorld,
    num_updates: int,
    batch_size: int,
    beta: float,
    key: Key,
) -> Channel:
    def loss(model: ModelFree, target: None, inputs: None, key: Key) -> tuple[Scalar, None]:
        state_key, loss_key = jax.random.split(key)
        states = sample_states(world, None, batch_size, key=state_key)
        losses, _ = jax.vmap(
            lambda state, key: model_free_loss(model, world, state, beta=beta, key=key)
        )(states, jax.random.split(loss_key, batch_size))
        return losses.mean(), None

    optimiser = optimise.clipped_adam(1.0)
    memory = optimiser.init(eqx.filter(model, eqx.is_inexact_array))
    rates = optimise.full_cosine(_LEARNING_RATE, num_updates)
    keys = jax.random.split(key, num_updates)
    (model, *_), _ = optimise.descend(
        loss, (model, memory, None), (None, rates, keys), optimiser=optimiser
    )
    return model.channel
