"""The balls: Gymnasium's contract, Box2D as the judge of rays and contacts, and physics."""

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from hypothesis import given, strategies as st

from empowerment.environments import BALLS, BallsEnv, joint, per_ball
from empowerment.environments.balls import NUM_RAYS
from empowerment.environments.box2d import FRICTION, INTERVAL, RADIUS, load
from empowerment.environments.lidar import Lidar

MASS = 5 * np.pi * RADIUS**2
CORNERS = [[2.0, 2.0], [8.0, 2.0], [2.0, 8.0], [8.0, 8.0]]


def random_forces(env: BallsEnv, seed: int, steps: int, *, hold: int = 1) -> np.ndarray:
    env.action_space.seed(seed)
    held = [env.action_space.sample() for _ in range(-(-steps // hold))]
    return np.repeat(held, hold, axis=0)[:steps]


def started(**options: Any) -> BallsEnv:
    env = BallsEnv(options.pop("num_balls", 4))
    env.reset(seed=0, options=options)
    return env


@pytest.mark.parametrize("num_balls", [1, 4])
def test_gymnasium_has_no_complaint(num_balls: int):
    env = gymnasium.make(BALLS, num_balls=num_balls, render_mode="rgb_array")
    with warnings.catch_warnings(record=True) as complaints:
        warnings.simplefilter("always")
        check_env(env.unwrapped)
    # Gymnasium recommends actions within one; our forces are physical and reach 60.
    assert ["symmetric and normalized" in str(c.message) for c in complaints] == [True]


def test_spaces_are_joint_and_of_one_ball():
    env = BallsEnv(3, max_force=7.0)
    assert env.observation_space.shape == (3 * 44,)
    assert env.single_observation_space.shape == (44,)
    assert env.action_space.high.tolist() == [7.0] * 6
    assert env.single_action_space.low.tolist() == [-7.0] * 2
    observation, _ = env.reset(seed=0)
    assert all(each in env.single_observation_space for each in per_ball(observation, 3))


def test_episodes_are_cut_by_the_clock_alone():
    env = gymnasium.make(BALLS)
    env.reset(seed=0)
    env.action_space.seed(0)
    endings = []
    for _ in range(200):
        observation, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        assert observation in env.observation_space
        assert reward == 0
        assert not terminated
        endings.append(truncated)
    assert endings == [False] * 199 + [True]


@given(st.integers(1, 5), st.integers(1, 4), st.integers(0, 3))
def test_per_ball_and_joint_undo_each_other(num_balls: int, each: int, batch: int):
    values = np.arange(batch * num_balls * each).reshape(batch, num_balls * each)
    apart = per_ball(values, num_balls)
    assert apart.shape == (batch, num_balls, each)
    np.testing.assert_array_equal(joint(apart), values)


def cast_rays(env: BallsEnv) -> np.ndarray:
    """What Box2D's own rays meet, one at a time."""

    class Nearest(load().b2RayCastCallback):
        own: Any = None
        fraction: float = np.nan

        def ReportFixture(self, fixture: Any, point: Any, normal: Any, fraction: float) -> float:  # noqa: N802
            if fixture.body == self.own:
                return -1.0  # go on as if it were not there
            self.fraction = fraction
            return fraction

    callback, ranges = Nearest(), np.empty((env.num_balls, NUM_RAYS))
    for seer, body in enumerate(env._bodies):
        start = np.array([body.position.x, body.position.y])
        for ray in range(NUM_RAYS):
            angle = 2 * np.pi * ray / NUM_RAYS
            stop = start + 20 * np.array([np.cos(angle), np.sin(angle)])
            callback.own, callback.fraction = body, np.nan
            env._world.RayCast(callback, tuple(start.tolist()), tuple(stop.tolist()))
            ranges[seer, ray] = 20 * callback.fraction
    return ranges


@pytest.mark.parametrize("num_balls", [1, 2, 4, 7])
def test_lidar_sees_what_the_rays_of_box2d_meet(num_balls: int):
    env = BallsEnv(num_balls)
    for seed in range(3):
        observation, _ = env.reset(seed=seed)
        for force in random_forces(env, seed, 100, hold=10):
            observation = env.step(force)[0]
        seen = per_ball(observation, num_balls)
        np.testing.assert_allclose(seen[:, :4], env.state, rtol=1e-6)
        np.testing.assert_allclose(seen[:, 4:], cast_rays(env), atol=2e-4)


def test_rays_by_hand():
    ranges = Lidar(4, side=10.0, radius=1.0)(np.array([[2.0, 5.0], [7.0, 5.5]]))
    chord = np.sqrt(1 - 0.5**2)
    np.testing.assert_allclose(ranges, [[5 - chord, 5, 2, 5], [3, 4.5, 5 - chord, 5.5]])


def judged_contacts(env: BallsEnv) -> tuple[list[bool], int]:
    """What Box2D says of contacts: which balls touch a wall, and how many pairs touch."""
    env._world.Step(0.0, 0, 0)  # brings its contacts up to date and moves nothing
    walls, pairs = [False] * env.num_balls, 0
    for contact in env._world.contacts:
        if contact.touching:
            bodies = [contact.fixtureA.body, contact.fixtureB.body]
            balls = [number for number, body in enumerate(env._bodies) if body in bodies]
            if len(balls) == 2:
                pairs += 1
            else:
                walls[balls[0]] = True
    return walls, pairs


def test_contacts_are_what_box2d_calls_so():
    env, found = BallsEnv(), np.zeros(2)
    for seed in range(3):
        env.reset(seed=seed)
        for force in random_forces(env, seed, 150, hold=4):
            info = env.step(force)[4]
            walls, pairs = judged_contacts(env)
            assert info["wall_touches"].tolist() == walls
            assert info["contacts"] == pairs
            found += sum(walls), pairs
    assert (found > 20).all()  # or this test shows nothing


def test_distances_are_from_the_rim_and_between_middles():
    env = started(positions=[[1.0, 5.0], [4.0, 9.0]], num_balls=2)
    info = env.reset(options={"positions": [[1.0, 5.0], [4.0, 9.0]]})[1]
    np.testing.assert_allclose(info["wall_distances"], [1 - RADIUS, 1 - RADIUS], atol=1e-6)
    np.testing.assert_allclose(info["pair_distances"], [5.0], atol=1e-6)
    assert BallsEnv(1).reset(seed=0)[1]["pair_distances"].shape == (0,)


def test_force_is_mass_times_acceleration():
    env = started(positions=CORNERS)
    force = np.array([60.0, -20.0])
    for _ in range(5):
        env.step(np.concatenate([force, np.zeros(6)]))
    velocity = force / MASS * INTERVAL * np.arange(1, 6)[:, None]
    np.testing.assert_allclose(env.state[0, 2:], velocity[-1], rtol=1e-5)
    np.testing.assert_allclose(env.state[0, :2], [2, 2] + velocity.sum(0) * INTERVAL, rtol=1e-5)
    np.testing.assert_allclose(env.state[1:, 2:], 0)


def test_forces_beyond_the_limit_are_clipped():
    env = started(positions=CORNERS)
    env.step(np.full(8, 1e6))
    np.testing.assert_allclose(env.state[:, 2:], 60 / MASS * INTERVAL, rtol=1e-5)


def test_walls_absorb_what_is_perpendicular():
    env = started(positions=[[1.0, 5.0]], velocities=[[-9.0, 0.0]], num_balls=1)
    for _ in range(10):
        env.step([0.0, 0.0])
    assert env.step([0.0, 0.0])[4]["wall_touches"].all()
    np.testing.assert_allclose(env.state[0, 2:], 0, atol=1e-6)
    env.step([60.0, 0.0])  # it does not stick
    assert env.state[0, 2] > 0.4


def test_friction_at_a_wall_sets_a_ball_rolling():
    """A disc that slips until it rolls keeps two thirds of its speed."""
    env = started(positions=[[5.0, 0.665]], velocities=[[3.0, 0.0]], num_balls=1)
    for _ in range(20):
        env.step([0.0, -60.0])
    np.testing.assert_allclose(env.state[0, 2], 2.0, atol=0.02)
    assert env._bodies[0].fixtures[0].friction == pytest.approx(FRICTION)


def test_collisions_are_inelastic_and_keep_momentum():
    """And fast balls do not sink into one another, let alone pass through."""
    start = {"positions": [[2.0, 5.0], [6.0, 5.0]], "velocities": [[18.0, 0.0], [-12.0, 0.0]]}
    env = started(**start, num_balls=2)
    for _ in range(6):
        env.step(np.zeros(4))
        assert env.state[1, 0] - env.state[0, 0] > 2 * RADIUS - 0.02
    np.testing.assert_allclose(env.state[:, 2], 3, atol=1e-4)


@pytest.mark.parametrize("num_balls", [4, 29])
def test_seed_decides_everything_whatever_came_before(num_balls: int):
    """Box2D remembers contacts, and in a crowd that shows: each episode has its own world."""
    used = BallsEnv(num_balls)
    forces = {seed: random_forces(used, seed, 40, hold=40) for seed in range(8)}

    def run(env: BallsEnv, seed: int) -> np.ndarray:
        return np.array([env.reset(seed=seed)[0], *(env.step(f)[0] for f in forces[seed])])

    for seed in forces:
        np.testing.assert_array_equal(run(used, seed), run(BallsEnv(num_balls), seed))
    assert (used.reset(seed=4)[0] != used.reset(seed=5)[0]).any()
    assert (used.reset()[0] != used.reset()[0]).any()


@pytest.mark.parametrize(("num_balls", "side"), [(2, 2.62), (4, 10.0), (29, 10.0)])
def test_balls_start_at_rest_without_overlap(num_balls: int, side: float):
    env = BallsEnv(num_balls, side=side)
    for seed in range(5):
        info = env.reset(seed=seed)[1]
        assert info["wall_distances"].min() > -1e-6
        assert info["pair_distances"].min() > 2 * RADIUS - 1e-6
        assert (env.state[:, 2:] == 0).all()


@pytest.mark.statistical
def test_a_lonely_ball_starts_anywhere():
    env = BallsEnv(1)
    env.reset(seed=0)
    starts = np.array([(env.reset(), env.state[0, :2])[1] for _ in range(500)])
    parts = np.sort((starts - RADIUS) / (10 - 2 * RADIUS), axis=0)
    gap = np.abs(parts - (np.arange(500)[:, None] + 0.5) / 500).max()
    assert gap < 1.95 / np.sqrt(500)  # Kolmogorov and Smirnov: once in a thousand


@pytest.mark.statistical
def test_uniform_forces_behave_as_documented():
    """Within four standard errors of what docs/worlds.md says for 100 episodes."""
    env, means = BallsEnv(), []
    for seed in range(12):
        env.reset(seed=seed)
        infos = [env.step(force)[4] for force in random_forces(env, seed, 200)]
        names = ("wall_distances", "wall_touches", "pair_distances", "contacts")
        means.append([np.mean([info[name] for info in infos]) for name in names])
    errors = np.std(means, axis=0, ddof=1) / np.sqrt(12)
    assert (np.abs(np.mean(means, axis=0) - [1.034, 0.071, 5.218, 0.075]) < 4 * errors).all()
    assert (errors < [0.1, 0.02, 0.3, 0.05]).all()


def test_start_can_be_given_and_given_again():
    env = started(positions=CORNERS, velocities=np.ones((4, 2)))
    np.testing.assert_allclose(env.state, np.hstack([CORNERS, np.ones((4, 2))]))
    for force in random_forces(env, 0, 150, hold=10):  # states with contacts as well
        env.step(force)
        state = env.state
        other = started(positions=state[:, :2], velocities=state[:, 2:])
        np.testing.assert_array_equal(other.state, state)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"position": CORNERS}, r"options to be 'positions' and 'velocities' alone; got"),
        ({"positions": CORNERS[:3]}, r"start positions to be 8 finite numbers .* shape \(4, 2\)"),
        ({"positions": [[np.nan, 2.0], *CORNERS[1:]]}, "start positions to be 8 finite numbers"),
        ({"positions": [[0.5, 2.0], *CORNERS[1:]]}, "at least 0.66 from the walls"),
        ({"positions": [[8.0, 3.2], *CORNERS[1:]]}, "1.32 from one another"),
        ({"velocities": [[41.0, 0.0], *CORNERS[1:]]}, "start velocities to be at most 40"),
        ({"velocities": "fast"}, "start velocities to be 8 finite numbers"),
    ],
)
def test_impossible_starts_are_refused(options: dict[str, Any], sentence: str):
    with pytest.raises(ValueError, match=sentence):
        BallsEnv().reset(options=options)


@pytest.mark.parametrize(
    "action", [[np.nan] * 8, [np.inf] * 8, [0.0] * 7, np.zeros((4, 2)), None, "push", [1e300] * 8]
)
def test_what_box2d_would_crash_on_is_refused(action: Any):
    env = started()
    before = env.state
    with pytest.raises(ValueError, match="the action to be 8 finite numbers"):
        env.step(action)
    np.testing.assert_array_equal(env.state, before)
    env.step(np.zeros(8))


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"num_balls": 0}, "num_balls to be a whole number from 1; got 0"),
        ({"num_balls": True}, "num_balls to be a whole number from 1; got True"),
        ({"num_balls": 30}, "side to be at least 10.14, so that 30 balls have room; got 10.0"),
        ({"side": np.nan}, "side to be positive and finite; got nan"),
        ({"max_force": 0.0}, "max_force to be positive and finite; got 0.0"),
        ({"show_lidar_of": 4}, "show_lidar_of to be None or the index of one of 4 balls; got 4"),
        ({"render_mode": "ansi"}, "render_mode to be None or one of"),
    ],
)
def test_impossible_boxes_are_refused(parameters: dict[str, Any], sentence: str):
    with pytest.raises(ValueError, match=sentence):
        BallsEnv(**parameters)


def test_step_before_reset_is_refused():
    env = BallsEnv()
    with pytest.raises(gymnasium.error.ResetNeeded, match="to be reset before"):
        env.step(np.zeros(8))
    with pytest.raises(gymnasium.error.ResetNeeded, match="to be reset before"):
        _ = env.state


def test_frames_show_balls_forces_and_rays():
    frames = []
    for seer, moves in ((None, 0), (None, 1), (0, 0), (1, 0)):
        env = BallsEnv(render_mode="rgb_array", show_lidar_of=seer)
        env.reset(options={"positions": CORNERS})
        for _ in range(moves):
            env.step(np.full(8, 60.0))
        frames.append(env.render())
    for frame in frames:
        assert frame is not None
        assert frame.shape == (400, 400, 3)
        assert frame.dtype == np.uint8
    plain, moved, first, second = frames
    assert (plain != moved).any()
    assert (plain != first).any(axis=2).mean() > 0.05
    mirrored = first[:, ::-1].astype(int)  # a mirror stands between the two, up to rounding
    np.testing.assert_allclose(mirrored, second, atol=1)


def test_without_a_render_mode_there_is_a_warning_and_no_frame():
    with pytest.warns(UserWarning, match="render_mode='rgb_array'"):
        assert started().render() is None


def test_spec_survives_and_environments_run_side_by_side():
    spec = gymnasium.make(BALLS, num_balls=2).spec
    assert spec is not None
    again = gymnasium.make(EnvSpec.from_json(spec.to_json())).unwrapped
    assert isinstance(again, BallsEnv)
    assert again.num_balls == 2
    env = gymnasium.make_vec(BALLS, 3, vectorization_mode="sync", num_balls=2)
    first = env.reset(seed=0)[0]
    _, _, _, _, info = env.step(env.action_space.sample())
    assert len(np.unique(first, axis=0)) == 3
    assert info["wall_touches"].shape == (3, 2)
    env.close()
