"""The simulation of a cluster, beside what can be said of it without one."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from simulate_cluster import Machine, Parts, simulate

#: Parts of which the workers are the slowest.
PARTS = Parts(
    files_per_batch=32,
    listing=0.00001,
    client=0.001,
    client_wait=0.0,
    client_loop=0.0,
    scheduler=0.001,
    worker_cpu=0.06,
    worker_wait=0.04,
    worker_loop=0.0,
    spread=0.0,
)


def test_workers_share_the_work() -> None:
    for workers in (1, 4, 10):
        said = simulate(PARTS, files=32_000, workers=workers)
        assert (said.batches, said.redone) == (1_000, 0)
        assert said.seconds == pytest.approx(1_000 * 0.1 / workers, rel=0.05)
        assert said.workers > 0.95


def test_what_one_process_does_is_the_limit_of_many_workers() -> None:
    client = simulate(replace(PARTS, client=0.01), files=32_000, workers=100)
    assert client.seconds == pytest.approx(1_000 * (0.01 + 32 * 0.00001), rel=0.05)
    assert client.client > 0.95
    scheduler = simulate(replace(PARTS, scheduler=0.02), files=32_000, workers=100)
    assert scheduler.seconds == pytest.approx(1_000 * 0.02, rel=0.05)
    assert scheduler.scheduler > 0.95


def test_cores_and_a_disk_are_shared() -> None:
    on_two = simulate(PARTS, files=32_000, workers=20, machine=Machine(2))
    assert on_two.seconds == pytest.approx(1_000 * (0.06 + 0.001 + 0.001 + 32 * 0.00001) / 2, rel=0.05)
    disk = simulate(PARTS, files=32_000, workers=4, machine=Machine(64, disk=3.0))
    assert disk.seconds == pytest.approx(1_000 * (0.06 + 3 * 0.04) / 4, rel=0.05)
    caches = simulate(PARTS, files=32_000, workers=4, machine=Machine(64, processor=1.5))
    assert caches.seconds == pytest.approx(1_000 * (1.5 * 0.06 + 0.04) / 4, rel=0.05)


def test_other_work_has_its_share_of_the_cores() -> None:
    busy = replace(PARTS, worker_wait=0.0, client=0.0, listing=0.0, scheduler=0.0)
    # Each of two workers and of six others has a quarter of a core.
    shared = simulate(busy, files=32_000, workers=2, machine=Machine(2, foreign=6))
    assert shared.seconds == pytest.approx(1_000 * 0.06 / 2 * 4, rel=0.02)
    # Where there are enough cores, nobody waits for another.
    assert simulate(busy, files=32_000, workers=2, machine=Machine(8, foreign=6)).seconds == pytest.approx(30, rel=0.02)


def test_threads_of_a_process_share_its_share() -> None:
    busy = replace(PARTS, worker_wait=0.0, client=0.0, listing=0.0, scheduler=0.0, worker_loop=0.06)
    # A worker and another session have half of one core each; a thread of the worker has a quarter while both run.
    grouped = simulate(busy, files=3_200, workers=1, machine=Machine(1, foreign=1))
    assert grouped.seconds == pytest.approx(100 * 0.12 * 2, rel=0.05)
    # Where each thread is a group, two threads have two thirds of it.
    threads = simulate(busy, files=3_200, workers=1, machine=Machine(1, foreign=1, is_grouped=False))
    assert threads.seconds == pytest.approx(100 * 0.12 * 1.5, rel=0.05)


def test_a_core_is_no_faster_for_one_process() -> None:
    alone = simulate(replace(PARTS, worker_wait=0.0), files=3_200, workers=1, machine=Machine(2))
    assert alone.seconds == pytest.approx(100 * 0.06, rel=0.02)


def test_workers_import_what_they_need_once() -> None:
    calm = simulate(PARTS, files=3_200, workers=4)
    fresh = simulate(replace(PARTS, startup=2.0), files=3_200, workers=4)
    assert fresh.seconds == pytest.approx(calm.seconds + 2.0, rel=0.05)


def test_batches_of_workers_that_die_are_done_again() -> None:
    calm = simulate(PARTS, files=320_000, workers=10)
    deadly = simulate(PARTS, files=320_000, workers=10, deaths=0.05, detection=3.0)
    # A death every 20 seconds of work costs the work since the batch began, half of it, and 3 seconds.
    assert deadly.redone == pytest.approx(10_000 * 0.1 * 0.05, rel=0.3)
    assert deadly.seconds == pytest.approx(calm.seconds * (1 + 0.05 * 3.05), rel=0.1)


def test_the_same_seed_gives_the_same() -> None:
    parts = replace(PARTS, spread=0.5)
    assert simulate(parts, files=32_000, workers=4, seed=1) == simulate(parts, files=32_000, workers=4, seed=1)
    assert simulate(parts, files=32_000, workers=4, seed=1) != simulate(parts, files=32_000, workers=4, seed=2)
