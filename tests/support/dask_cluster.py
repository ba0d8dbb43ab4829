"""A Dask cluster of separate processes on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import dask
from distributed import Client

ROOT = Path(__file__).parents[2]
#: Workers find the modules of the tests too.
SETTINGS = {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests")))}
#: Seconds until a worker that was killed is given up, instead of 30: the machine is this one.
TIMEOUT = "3s"
SETTINGS["DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT"] = TIMEOUT


class LocalProcesses:
    """A scheduler and workers, each in a process of its own.

    Args:
        folder: A folder for their logs and scratch files.
        settings: Environment variables of the workers, beside those of this process; ``None`` for one they lack.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str | None] | None = None) -> None:
        self._folder = folder
        self._settings = settings or {}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        file = folder / "scheduler.json"
        self._start("scheduler", "scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))
        deadline = time.monotonic() + 60
        while not file.exists() or not file.read_text():
            assert self._processes["scheduler"].poll() is None, self.log("scheduler")
            assert time.monotonic() < deadline
            time.sleep(0.05)
        self._file = file
        with Client(scheduler_file=str(file), set_as_default=False) as client:
            self.address: str = client.scheduler.address

    def add(self, name: str, *options: str) -> None:
        """Start a worker with one thread."""
        own = ("--name", name, "--nthreads", "1", "--local-directory", str(self._folder / name))
        self._start(name, "worker", self.address, *own, *options)

    def kill(self, name: str) -> None:
        """Kill a worker, with the nanny that would start it again."""
        os.killpg(self._processes.pop(name).pid, signal.SIGKILL)

    @property
    def leaders(self) -> list[int]:
        """The processes that were started, each of which leads a session with those that it starts."""
        return [each.pid for each in self._processes.values()]

    def log(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text(errors="replace")

    def await_workers(self, number: int) -> None:
        """Wait for a number of workers."""
        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(number, timeout=60)

    def stop(self) -> None:
        """Kill all processes."""
        for name in list(self._processes):
            self.kill(name)

    def _start(self, name: str, *arguments: str) -> None:
        command = [sys.executable, "-m", "dask", *arguments, "--no-dashboard"]
        wanted = {**os.environ, **SETTINGS, **self._settings}
        environment = {key: value for key, value in wanted.items() if value is not None}
        with (self._folder / f"{name}.log").open("wb") as log:
            # In a group of its own, which a kill ends as a whole.
            self._processes[name] = subprocess.Popen(
                command, env=environment, cwd=self._folder, stdout=log, stderr=log, start_new_session=True
            )


@contextmanager
def running_cluster(
    folder: Path, workers: int, settings: Mapping[str, str | None] | None = None
) -> Iterator[LocalProcesses]:
    """Yield a cluster with a number of workers, named `worker0` and so on."""
    with dask.config.set({"distributed.comm.timeouts.connect": TIMEOUT}):
        cluster = LocalProcesses(folder, settings)
        try:
            for number in range(workers):
                cluster.add(f"worker{number}")
            cluster.await_workers(workers)
            yield cluster
        finally:
            cluster.stop()
