"""Collection on Ray: the same episodes as here, whatever befalls workers and nodes."""

from pathlib import Path

import pytest
from ray.cluster_utils import Cluster
from test_collect import DOOMED, assert_same
from worlds_for_tests import Counting, Slow

from empowerment.cli import main
from empowerment.data import Trajectories, collect
from empowerment.data.workers import EpisodeQueue


@pytest.mark.slow
def test_episodes_are_the_same_for_any_number_of_workers_there(cluster: Cluster, tmp_path: Path):
    here, _ = collect(Counting, steps=101, seed=5)
    for workers in (1, 3):  # The third waits for a core.
        there, _ = collect(
            Counting, steps=101, seed=5, workers=workers, cluster=str(cluster.address)
        )
        assert_same(here, there)
    out = tmp_path / "data.npz"
    words = ["collect", "Pendulum-v1", "--steps", "410", "--seed", "3", "--out", str(out)]
    main([*words, "--workers", "2", "--backend", "ray", "--address", str(cluster.address)])
    assert_same(collect("Pendulum-v1", steps=410, seed=3)[0], Trajectories.load(out))


@pytest.mark.slow
def test_episodes_that_die_hang_or_fail_there_are_those_that_do_here(cluster: Cluster):
    here, report = collect(DOOMED, steps=30, seed=31, workers=2, timeout=2.0)
    there, other = collect(
        DOOMED, steps=30, seed=31, workers=2, timeout=2.0, cluster=str(cluster.address)
    )
    assert_same(here, there)
    assert [(each.index, each.why) for each in other.failed] == [
        (each.index, each.why) for each in report.failed
    ]


@pytest.mark.slow
def test_a_lost_node_makes_no_difference(cluster: Cluster):
    def lose_a_node(doing: str, done: int, total: int) -> None:
        if done > 20 and len(cluster.worker_nodes) == 2:
            cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)

    address = str(cluster.address)
    here, _ = collect(Slow, steps=200, seed=7)
    there, report = collect(
        Slow, steps=200, seed=7, workers=2, cluster=address, progress=lose_a_node
    )
    assert len(cluster.worker_nodes) == 1
    assert report.restarts >= 1
    assert_same(here, there)


def test_an_episode_whose_worker_died_is_run_once_more():
    queue = EpisodeQueue(steps=10)
    assert [queue.take_index(), queue.take_index()] == [0, 1]
    queue.lose(0, "gone")
    assert queue.wants_more
    assert queue.take_index() == 0
    assert queue.failed == []
    queue.lose(0, "gone again")
    assert [(each.index, each.why, each.detail) for each in queue.failed] == [
        (0, "died", "gone again")
    ]
    assert queue.take_index() == 2
