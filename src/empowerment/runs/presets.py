"""Named experiments: data, no code."""

from dataclasses import dataclass, replace

from empowerment.agent import AgentSettings
from empowerment.model import ModelSettings
from empowerment.runs.experiment import Experiment


@dataclass(frozen=True)
class Preset:
    """A named experiment.

    Attributes:
        about: One line for `empower train --help`.
        experiment: Its settings.
    """

    about: str
    experiment: Experiment


LEARNT = Experiment(agent=AgentSettings(family="codebook"))
"""Defaults for any environment or log."""

_BALL = replace(
    LEARNT,
    env="empowerment/Ball-v0",
    process_noise=False,
    resolution=0.2,
    agent=AgentSettings(
        family="codebook",
        steps=1,
        channel_updates=2000,
        horizon=15,
        first_beta=8.0,
        last_beta=8.0,
    ),
    model=ModelSettings(latent_size=6, outlier_probability=0.0),
)

# Sizes and beta of ball-paper and balls-paper: App. A.2.3 of Karl et al. (2018).
_BALL_PAPER = replace(
    LEARNT,
    env="empowerment/Ball-v0",
    perceive="latent",
    agent=AgentSettings(
        steps=1,
        family="paper",
        joint=True,
        critic=False,
        discount=1.0,
        horizon=15,
        first_beta=50.0,
        last_beta=50.0,
        learning_rate=1e-3,
        depth=1,
        channel_updates=500,
    ),
    model=ModelSettings(latent_size=32, as_published=True, outlier_probability=0.0),
)

# App. A.3.1 of Karl et al. (2018): four layers of 128 tanh for policy, source and planning; beta
# from 5 to 2000 over 800 epochs; one step. T, M, the learning rate and the length of an epoch are
# not stated: those are ours, an epoch is 4 updates.
_PENDULUM_PAPER = AgentSettings(
    steps=1,
    family="paper",
    channel_updates=200,
    joint=True,
    policy_updates=4000,
    horizon=20,
    num_starts=64,
    first_beta=5.0,
    last_beta=2000.0,
    rise=3200,
    critic=False,
    discount=1.0,
    learning_rate=1e-3,
    depth=4,
)

PRESETS: dict[str, Preset] = {
    "pendulum": Preset(
        "swing up a pendulum whose equations are known", Experiment(world="pendulum")
    ),
    "pendulum-learnt": Preset(
        "the same from data alone",
        replace(
            LEARNT,
            env="empowerment/PendulumDirection-v0",
            data_env="empowerment/PendulumAnywhere-v0",
            data_steps=10000,
            resolution=0.05,
            process_noise=False,
            model=ModelSettings(
                latent_size=4, depth=2, outlier_probability=0.0, window=10, updates=8000
            ),
        ),
    ),
    "ball": Preset("keep a ball off the walls of a box, from data", _BALL),
    "ball-10step": Preset(
        "the same with plans of ten steps",
        replace(_BALL, resolution=1.0).with_agent(steps=10, channel_updates=1000),
    ),
    "balls": Preset(
        "keep four balls off the walls and off each other, from data",
        replace(
            LEARNT,
            env="empowerment/Balls-v0",
            agents=4,
            action_repeat=2,
            resolution=0.1,
            agent=AgentSettings(
                family="codebook",
                steps=6,
                channel_updates=600,
                horizon=15,
                first_beta=60.0,
                last_beta=60.0,
            ),
            model=ModelSettings(latent_size=32, depth=2, outlier_probability=0.0, updates=10000),
        ),
    ),
    "biped": Preset(
        "keep a robot with two legs on its feet, from data",
        replace(
            LEARNT,
            env="BipedalWalker-v3",
            action_repeat=3,
            data_steps=30000,
            rounds=2,
            round_steps=15000,
            agent=AgentSettings(
                family="codebook", steps=3, channel_updates=1000, policy_updates=1500
            ),
            model=ModelSettings(latent_size=64, window=16, updates=4000, learning_rate=2e-3),
        ),
    ),
    "ball-paper": Preset("the ball as published", _BALL_PAPER),
    "balls-paper": Preset(
        "the four balls as published",
        replace(
            _BALL_PAPER,
            env="empowerment/Balls-v0",
            agents=4,
            model=ModelSettings(latent_size=16, as_published=True, outlier_probability=0.0),
        ).with_agent(first_beta=20.0, last_beta=20.0),
    ),
    "pendulum-paper": Preset(
        "the pendulum as published", Experiment(world="pendulum", agent=_PENDULUM_PAPER)
    ),
    "pendulum-paper-5step": Preset(
        "the same with plans of five steps and the tightest family that is trained jointly",
        Experiment(world="pendulum", agent=_PENDULUM_PAPER).with_agent(
            steps=5,
            family="intent",
            channel_updates=4000,
            policy_updates=2000,
            rise=1600,
            learning_rate=1e-3,
            depth=2,
        ),
    ),
}
"""Experiments by name; every field is a flag of `empower train`."""
