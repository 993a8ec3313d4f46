"""Experiments that go by a name."""

from dataclasses import replace

from empowerment.experiments.config import Experiment, ModelSettings

LEARNT = Experiment(family="codebook", steps=5)
"""How a world that nobody tuned for is learnt and acted in."""

_BALL = replace(
    LEARNT,
    env="empowerment/Ball-v0",
    process_noise=False,
    steps=1,
    resolution=0.2,
    channel_updates=2000,
    horizon=15,
    first_beta=8.0,
    last_beta=8.0,
    model=ModelSettings(latent_size=6, outlier_probability=0.0),
)

_BALL_PAPER = replace(
    LEARNT,
    env="empowerment/Ball-v0",
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
    perceive="latent",
    model=ModelSettings(latent_size=32, as_published=True, outlier_probability=0.0),
)

_BIPED = replace(
    LEARNT,
    env="BipedalWalker-v3",
    action_repeat=3,
    data_steps=30000,
    rounds=2,
    round_steps=15000,
    steps=3,
    channel_updates=1000,
    policy_updates=1500,
    model=ModelSettings(latent_size=64, window=16, model_updates=4000, model_learning_rate=2e-3),
)

# Each number that is the paper's is from App. A.3.1 of Karl et al. (2018): four layers of 128
# tanh for policy, source and planning; beta from 5 to 2000 over 800 epochs; one step. It states
# neither T, M, the learning rate nor how long an epoch is: those are ours, an epoch is 4 updates.
PRESETS: dict[str, Experiment] = {
    "pendulum": Experiment(),
    "pendulum-learnt": replace(
        LEARNT,
        env="empowerment/PendulumDirection-v0",
        data_env="empowerment/PendulumAnywhere-v0",
        data_steps=10000,
        resolution=0.05,
        process_noise=False,
        model=ModelSettings(
            latent_size=4, model_depth=2, outlier_probability=0.0, window=10, model_updates=8000
        ),
    ),
    # Sizes and beta of the -paper presets: App. A.2.3 of Karl et al. (2018).
    "ball": _BALL,
    "ball-10step": replace(_BALL, steps=10, resolution=1.0, channel_updates=1000),
    "balls": replace(
        LEARNT,
        env="empowerment/Balls-v0",
        agents=4,
        action_repeat=2,
        steps=6,
        resolution=0.1,
        channel_updates=600,
        horizon=15,
        first_beta=60.0,
        last_beta=60.0,
        model=ModelSettings(
            latent_size=32, model_depth=2, outlier_probability=0.0, model_updates=10000
        ),
    ),
    "biped": _BIPED,
    "ball-paper": _BALL_PAPER,
    "balls-paper": replace(
        _BALL_PAPER,
        env="empowerment/Balls-v0",
        agents=4,
        first_beta=20.0,
        last_beta=20.0,
        model=ModelSettings(latent_size=16, as_published=True, outlier_probability=0.0),
    ),
    "pendulum-paper": Experiment(
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
    ),
    "pendulum-paper-5step": Experiment(
        steps=5,
        family="intent",
        channel_updates=4000,
        joint=True,
        policy_updates=2000,
        horizon=20,
        num_starts=64,
        first_beta=5.0,
        last_beta=2000.0,
        rise=1600,
        critic=False,
        discount=1.0,
        learning_rate=1e-3,
    ),
}
"""Experiments by name; every field is a flag of `empower train`."""
