"""Finding or starting Ray, and refusing in one line what it cannot do; nothing here waits longer than it says.

Where Ray ends this process itself (when its raylet dies it leaves at once, and gives Python no turn), `Witness` has the last word.
"""

from __future__ import annotations

import logging
import math
import os
import socket
import subprocess
import sys
from typing import Any

import ray

from protogoal.agents.blueprint import EnvSpaces
from protogoal.config import DeepConfig, RaySettings
from protogoal.run.limits import check_cluster

LINE = ("protogoal: the run was ended from outside, or by Ray because its raylet died; it is kept up to its last checkpoint, "
        "and protogoal resume goes on from there")
_CODE = "import sys\nif not sys.stdin.read(): print(sys.argv[1], file=sys.stderr)"


def connect(settings: RaySettings) -> bool:
    """Joins the cluster at `settings.address`, or starts one here; True where `ray.shutdown` has to end it.

    A Ray that this process has joined already is used as it is.
    """
    if ray.is_initialized():
        return False
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent to anyone
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if settings.address:
        _check_answers(settings)
        quiet["address"] = settings.address
    else:
        os.environ.setdefault("RAY_worker_niceness", "0")  # the roles are what this machine is for now
        cpus = max(os.cpu_count() or 1, math.ceil(demands(settings)["CPU"]))  # shared out by the system
        quiet |= {"address": "local", "include_dashboard": False, "num_cpus": cpus}  # of its own, whatever runs here already
    try:
        ray.init(**quiet)
    except (Exception, SystemExit) as error:
        where = f"the Ray cluster at {settings.address}" if settings.address else "Ray on this machine"
        raise ValueError(f"cannot use {where}: {_first_line(error)}") from None
    return True


def _check_answers(settings: RaySettings) -> None:
    """A ValueError unless a cluster answers in time; Ray itself would wait for minutes."""
    waited = f"(ray.connect_seconds = {settings.connect_seconds:g})"
    if settings.address == "auto":
        return  # Ray looks into files of this machine, which takes no time
    host, _, port = settings.address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=settings.connect_seconds).close()
    except (OSError, OverflowError) as error:
        raise ValueError(f"nobody answers at {settings.address}: {_first_line(error)} {waited}") from None
    command = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", settings.address]
    try:
        is_ray = subprocess.run(command, timeout=settings.connect_seconds, capture_output=True, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        is_ray = False
    if not is_ray:
        raise ValueError(f"no Ray cluster answers at {settings.address} {waited}")


def demands(settings: RaySettings) -> dict[str, float]:
    """CPUs and GPUs that all roles reserve together."""
    cpus = (settings.workers * settings.worker_cpus + settings.shards * settings.shard_cpus + settings.learner_cpus
            + settings.pge_cpus + settings.player_cpus)
    return {"CPU": cpus, "GPU": settings.learner_gpus}


def check_resources(config: DeepConfig, spaces: EnvSpaces) -> None:
    """Refuses what does not fit the cluster: reservations in all, the largest role, memory."""
    settings = config.ray
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    wanted = demands(settings)
    s = settings
    largest = {"CPU": max(s.worker_cpus, s.learner_cpus, s.shard_cpus, s.pge_cpus, s.player_cpus), "GPU": s.learner_gpus}
    for kind in ("CPU", "GPU"):
        there = sum(node.get(kind, 0.0) for node in nodes)
        if wanted[kind] > there:
            raise ValueError(f"the run needs {wanted[kind]:g} {kind}s ({s.workers} workers, {s.shards} shards, 3 other roles), the "
                             f"cluster has {there:g}; use fewer --workers, or lower ray.worker_cpus and the like")
        most = max((node.get(kind, 0.0) for node in nodes), default=0.0)
        if largest[kind] > most:
            raise ValueError(f"one role needs {largest[kind]:g} {kind}s, the largest machine of the cluster has {most:g}")
    memory = [node["memory"] for node in nodes if "memory" in node]
    if len(memory) == len(nodes):  # where every machine tells
        check_cluster(config, spaces, memory)


def _first_line(error: BaseException) -> str:
    words = str(error).strip()
    return words.splitlines()[0].rstrip(".") if words else type(error).__name__


class Witness:
    """A tiny process that says `LINE` when this one ends, unless it was dismissed before: the pipe to it just closes."""

    def __init__(self) -> None:
        command = [sys.executable, "-I", "-S", "-c", _CODE, LINE]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)  # Ctrl-C is not for it

    def dismiss(self) -> None:
        """Ends it in silence. Safe to call twice."""
        if self._process.returncode is None:
            self._process.communicate(b"dismissed")
