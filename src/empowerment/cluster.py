"""Connecting to a Ray cluster, within a bounded time."""

import os
import socket
import subprocess
import sys
from typing import Any

import ray

_ANSWER_SECONDS = 60.0
"""Seconds within which a cluster has to answer; a busy one takes a few."""

_PROBE = "import sys, ray; ray.init(address=sys.argv[1], log_to_driver=False)"

_QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}


def connect(address: str) -> None:
    """Connect to a Ray cluster.

    Args:
        address: `auto` for the one that is running, `local` for a new one on this machine, or
            `HOST:PORT`.

    Raises:
        ValueError: If none answers.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if ray.is_initialized():
        return
    if address == "local":
        ray.init(include_dashboard=False, **_QUIET)
        return
    complaint = _complaint(address)
    if complaint is not None:
        raise ValueError(
            f"Expected a Ray cluster at {address}; {complaint}. Start one by ray start --head, or "
            "use --address local."
        )
    ray.init(address=address, **_QUIET)


def _complaint(address: str) -> str | None:
    """Return why there is no cluster at an address, if there is none.

    Ray itself waits for minutes and may end its process, so another one goes first.
    """
    if address != "auto":
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit() or "://" in address:
            return "the address is not HOST:PORT"
        try:
            socket.create_connection((host, int(port)), timeout=_ANSWER_SECONDS).close()
        except (OSError, OverflowError) as error:
            return f"it cannot be reached ({getattr(error, 'strerror', None) or error})"
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROBE, address],
            capture_output=True,
            text=True,
            timeout=_ANSWER_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it does not answer within {_ANSWER_SECONDS:.0f} s"
    if address == "auto" and "Could not find any running" in done.stderr:
        return "none is running here"
    last = (done.stderr.strip().splitlines() or ["no reason is given"])[-1]
    return None if done.returncode == 0 else f"connecting failed ({last[:200].rstrip('.')})"
