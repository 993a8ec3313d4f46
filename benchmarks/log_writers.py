"""Writers of logs in every format that is read, by the formats' own libraries."""

import csv
import json
import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import h5py
import minari
import numpy as np
import pyarrow
from gymnasium.spaces import Box
from minari.data_collector import EpisodeBuffer
from pyarrow import parquet
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from empowerment.data import Episode, LogOptions, Trajectories

RATE = 50.0
"""Rows a second."""

_PAUSE = 10.0
"""Seconds between two episodes in a bag."""

Source = tuple[str, LogOptions]
"""A log, and how to read it."""


def columns(episodes: Sequence[Episode]) -> dict[str, np.ndarray]:
    """Return one row for each observation; the action of the last of an episode repeats."""
    seen = np.concatenate([each.observations for each in episodes])
    done = np.concatenate([np.concatenate([e.actions, e.actions[-1:]]) for e in episodes])
    lengths = [len(each.observations) for each in episodes]
    table = {f"x{axis}": seen[:, axis] for axis in range(seen.shape[1])}
    table |= {f"u{axis}": done[:, axis] for axis in range(done.shape[1])}
    table["run"] = np.repeat(np.arange(len(lengths)), lengths)
    table["t"] = np.concatenate([np.arange(length) for length in lengths]) / RATE
    table["fell"] = np.concatenate(
        [(np.arange(len(e.observations)) == e.length) & e.terminated for e in episodes]
    )
    if all(each.rewards is not None for each in episodes):
        table["paid"] = np.concatenate([np.append(_rewards(each), 0) for each in episodes])
    return table


def _rewards(episode: Episode) -> np.ndarray:
    return np.zeros(episode.length) if episode.rewards is None else episode.rewards


def table_options(data: Trajectories) -> LogOptions:
    """Return the names of the columns of a table."""
    return LogOptions(
        observations=",".join(f"x{axis}" for axis in range(data.observation_size)),
        actions=",".join(f"u{axis}" for axis in range(data.action_size)),
        episode="run",
        time="t",
        terminated="fell",
        reward="paid" if data.has_rewards else None,
    )


def write_npz(data: Trajectories, folder: Path) -> Source:
    data.save(folder / "log.npz")
    return str(folder / "log.npz"), LogOptions()


def write_csv(data: Trajectories, folder: Path) -> Source:
    table = columns(data.episodes)
    with (folder / "log.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(zip(*(values.tolist() for values in table.values()), strict=True))
    return str(folder / "log.csv"), table_options(data)


def write_parquet(data: Trajectories, folder: Path) -> Source:
    parquet.write_table(pyarrow.table(columns(data.episodes)), folder / "log.parquet")
    return str(folder / "log.parquet"), table_options(data)


def write_hdf5(data: Trajectories, folder: Path) -> Source:
    episodes = data.episodes
    last = np.concatenate([np.arange(each.length) == each.length - 1 for each in episodes])
    ends = np.repeat([e.terminated for e in episodes], [e.length for e in episodes])
    with h5py.File(folder / "log.hdf5", "w") as file:
        file["observations"] = np.concatenate([each.observations[:-1] for each in episodes])
        file["next_observations"] = np.concatenate([each.observations[1:] for each in episodes])
        file["actions"] = np.concatenate([each.actions for each in episodes])
        file["terminals"] = last & ends
        file["timeouts"] = last & ~ends
        if data.has_rewards:
            file["rewards"] = np.concatenate([_rewards(each) for each in episodes])
    return str(folder / "log.hdf5"), LogOptions(interval=1 / RATE)


def write_minari(data: Trajectories, folder: Path) -> Source:
    """Write where `MINARI_DATASETS_PATH` says; it is set for the process."""
    os.environ["MINARI_DATASETS_PATH"] = str(folder / "minari")
    buffers = [
        EpisodeBuffer(
            id=index,
            observations=episode.observations,  # pyright: ignore[reportArgumentType]
            actions=episode.actions,  # pyright: ignore[reportArgumentType]
            rewards=_rewards(episode),  # pyright: ignore[reportArgumentType]
            terminations=(np.arange(episode.length) == episode.length - 1) & episode.terminated,
            truncations=(np.arange(episode.length) == episode.length - 1) & episode.truncated,
            infos={},
        )
        for index, episode in enumerate(data.episodes)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # It wants a description.
        minari.create_dataset_from_buffers(
            "mine/log-v0",
            buffers,
            observation_space=Box(-np.inf, np.inf, (data.observation_size,)),
            action_space=Box(-np.inf, np.inf, (data.action_size,)),
            data_format="hdf5",
        )
    return "minari:mine/log-v0", LogOptions()


def write_lerobot(data: Trajectories, folder: Path, *, version: str = "v3.0") -> Source:
    root = folder / f"lerobot-{version}"
    (root / "meta").mkdir(parents=True)
    (root / "data" / "chunk-000").mkdir(parents=True)
    table = columns(data.episodes)
    seen = np.stack([table[f"x{axis}"] for axis in range(data.observation_size)], axis=1)
    done = np.stack([table[f"u{axis}"] for axis in range(data.action_size)], axis=1)
    single = data.action_size == 1
    paid = {"next.reward": table["paid"].astype(np.float32)} if data.has_rewards else {}
    arrow = pyarrow.table(
        {
            "observation.state": _vectors(seen),
            "action": done[:, 0] if single else _vectors(done),
            "timestamp": table["t"].astype(np.float32),
            "frame_index": np.round(table["t"] * RATE).astype(int),
            "episode_index": table["run"],
            **paid,
        }
    )
    stats = {"action": {"min": done.min(0).tolist(), "max": done.max(0).tolist()}}
    files = root / "data" / "chunk-000"
    if version == "v3.0":
        half = len(done) // 2
        parquet.write_table(arrow.slice(0, half), files / "file-000.parquet")
        parquet.write_table(arrow.slice(half), files / "file-001.parquet")
        (root / "meta" / "stats.json").write_text(json.dumps(stats))
    else:
        for index in range(len(data.episodes)):
            rows = np.flatnonzero(table["run"] == index)
            part = arrow.slice(int(rows[0]), len(rows))
            parquet.write_table(part, files / f"episode_{index:06d}.parquet")
        lines = [json.dumps({"episode_index": 0, "stats": stats})]
        (root / "meta" / "episodes_stats.jsonl").write_text("\n".join(lines))
    features = {
        "observation.state": {"dtype": "float32", "shape": [data.observation_size], "names": None},
        "action": {"dtype": "float32", "shape": [data.action_size], "names": None},
        "observation.images.top": {"dtype": "video", "shape": [3, 8, 8], "names": None},
        "timestamp": {"dtype": "float32", "shape": [1], "names": None},
    }
    features |= {name: {"dtype": "float32", "shape": [1], "names": None} for name in paid}
    info = {
        "codebase_version": version,
        "fps": RATE,
        "total_frames": len(done),
        "total_episodes": len(data.episodes),
        "features": features,
    }
    (root / "meta" / "info.json").write_text(json.dumps(info))
    return str(root), LogOptions()


def write_lerobot_v2(data: Trajectories, folder: Path) -> Source:
    return write_lerobot(data, folder, version="v2.1")


def _vectors(rows: np.ndarray) -> pyarrow.Array:
    flat = pyarrow.array(rows.astype(np.float32).ravel())
    return pyarrow.FixedSizeListArray.from_arrays(flat, rows.shape[1])


def write_bag(
    data: Trajectories, folder: Path, *, plugin: StoragePlugin = StoragePlugin.MCAP
) -> Source:
    """Write joint states, and commands 5 ms after them; episodes are seconds apart."""
    root = folder / f"bag-{plugin.name}"
    types = get_typestore(Stores.ROS2_HUMBLE)
    joints, command = "sensor_msgs/msg/JointState", "std_msgs/msg/Float64MultiArray"
    header = types.types["std_msgs/msg/Header"]
    stamp = types.types["builtin_interfaces/msg/Time"]
    layout = types.types["std_msgs/msg/MultiArrayLayout"](dim=[], data_offset=0)
    names = [f"x{axis}" for axis in range(data.observation_size)]
    start = 1_700_000_000 * 10**9
    with Writer(root, version=9, storage_plugin=plugin) as writer:
        states = writer.add_connection("/joint_states", joints, typestore=types)
        commands = writer.add_connection("/commands", command, typestore=types)
        for episode in data.episodes:
            # One command before, and one after: then none is missing at the ends.
            actions = np.concatenate([episode.actions, episode.actions[-1:]]).astype(float)
            for row, seen in enumerate(episode.observations.astype(float)):
                time = start + round(row * 1e9 / RATE)
                message = types.types[joints](
                    header=header(stamp(sec=row, nanosec=0), frame_id="base"),
                    name=names,
                    position=seen,
                    velocity=np.array([]),
                    effort=np.array([]),
                )
                writer.write(states, time, types.serialize_cdr(message, joints))
                message = types.types[command](layout=layout, data=actions[row])
                raw = types.serialize_cdr(message, command)
                if row == 0:
                    writer.write(commands, time - 5_000_000, raw)
                writer.write(commands, time + 5_000_000, raw)
            start += round((len(episode.observations) / RATE + _PAUSE) * 1e9)
    return str(root), LogOptions(
        observations="/joint_states.position", actions="/commands.data", rate=RATE
    )


def write_sqlite_bag(data: Trajectories, folder: Path) -> Source:
    return write_bag(data, folder, plugin=StoragePlugin.SQLITE3)


WRITERS: dict[str, Callable[[Trajectories, Path], Source]] = {
    "npz": write_npz,
    "csv": write_csv,
    "parquet": write_parquet,
    "hdf5": write_hdf5,
    "minari": write_minari,
    "lerobot v3.0": write_lerobot,
    "lerobot v2.1": write_lerobot_v2,
    "rosbag2 mcap": write_bag,
    "rosbag2 sqlite3": write_sqlite_bag,
}
"""A writer for each format, by the name of its reader and its variant."""
