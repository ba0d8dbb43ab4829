"""Claims of migrations on stores: kept while their clients live, however long a batch takes, and lost only to others.

The time after which a claim is renewed is shortened, and that after which its client is gone where a test is about it;
the clock is the real one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from support.corpus import EXAMPLES
from support.store_buckets import Bucket

import vhlo_tools as vt
from vhlo_tools.files import open_object, stamp_of, write_object
from vhlo_tools.stores import claim as claims

FROM, TARGET = "1.9.0", "1.1.0"
#: Seconds after which a client is gone where a test waits for it: a loaded machine renews a claim well before.
GONE = 8.0


@pytest.fixture(params=["s3", "memory"])
def store(
    request: pytest.FixtureRequest, make_bucket: Callable[[str], Bucket], monkeypatch: pytest.MonkeyPatch
) -> Bucket:
    return filled(make_bucket(request.param), monkeypatch)


def filled(store: Bucket, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    monkeypatch.setattr(claims, "_RENEWED", 0.1)
    artifact = vt.serialize(EXAMPLES / "saxpy.mlir", FROM)
    for number in range(2):
        artifact.save(str(store / f"{number}.mlirbc"))
    return store


def write_seen(store: Bucket, claimed: Any, seen: float) -> None:
    """Write the claim as a client leaves it that was killed when it was last seen."""
    write_object(store.url / ".vhlo-migration", [json.dumps({**claimed, "seen": seen}).encode()], force=True)


def claimed_in(store: Bucket) -> Any:
    return json.loads(bytes(open_object(store.url / ".vhlo-migration")))


class Held:
    """A program whose retargeting goes on until it is let go."""

    def __init__(self) -> None:
        self.begun, self.free = threading.Event(), threading.Event()

    def retarget(self, *arguments: Any, **options: Any) -> Any:
        self.begun.set()
        assert self.free.wait(60)
        return vt.retarget(*arguments, **options)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    found = Held()
    monkeypatch.setattr("vhlo_tools.api.stores.retarget", found.retarget)
    yield found
    found.free.set()


def statuses(records: Any) -> list[str]:
    return [each.status for each in records]


def test_a_batch_may_take_longer_than_a_client_may_be_silent(
    store: Bucket, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "_GONE", GONE)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(lambda: statuses(vt.migrate(str(store.url), TARGET)))
        assert held.begun.wait(120)
        end = time.monotonic() + 1.5 * GONE
        while time.monotonic() < end:
            with pytest.raises(vt.MigrationError, match="in use by another migration"):
                next(vt.migrate(str(store.url), TARGET))
        held.free.set()
        assert first.result(60) == ["moved", "moved"]
    assert stamp_of(store.url / ".vhlo-migration") is None


def test_a_client_that_is_gone_is_taken_over(store: Bucket) -> None:
    running = vt.migrate(str(store.url), TARGET)
    next(running)
    claimed = claimed_in(store)
    del running  # which ends it
    write_seen(store, claimed, time.time())
    with pytest.raises(vt.MigrationError, match="in use by another migration"):
        next(vt.migrate(str(store.url), TARGET))
    write_seen(store, claimed, time.time() - claims._GONE)
    assert statuses(vt.migrate(str(store.url), TARGET)) == ["moved", "moved"]


def test_two_calls_in_one_process(store: Bucket) -> None:
    running = vt.migrate(str(store.url), TARGET)
    next(running)
    for restart in (False, True):
        with pytest.raises(vt.MigrationError, match="in use by another migration"):
            next(vt.migrate(str(store.url), TARGET, restart=restart))
    assert statuses(running) == ["moved"]


def test_a_claim_that_is_another_s_ends_the_wait_for_a_batch(store: Bucket, held: Held) -> None:
    claim = store.url / ".vhlo-migration"
    with ThreadPoolExecutor(1) as work, ThreadPoolExecutor(1) as pool:
        ending = pool.submit(lambda: statuses(vt.migrate(str(store.url), TARGET, executor=work)))
        assert held.begun.wait(120)
        claimed = json.loads(bytes(open_object(claim)))
        write_object(claim, [json.dumps({**claimed, "client": "elsewhere:1"}).encode()], force=True)
        # The batch still goes on.
        with pytest.raises(vt.MigrationError, match="another client has taken over"):
            ending.result(60)
        assert not held.free.is_set()
        held.free.set()
    assert json.loads(bytes(open_object(claim)))["client"] == "elsewhere:1"


def test_a_renewal_that_was_done_and_not_answered(store: Bucket, held: Held) -> None:
    claim = store.url / ".vhlo-migration"
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(lambda: statuses(vt.migrate(str(store.url), TARGET)))
        assert held.begun.wait(120)
        # Another version of the object, by the same client.
        write_object(claim, [bytes(open_object(claim))], force=True)
        time.sleep(0.5)
        held.free.set()
        assert running.result(60) == ["moved", "moved"]
    assert stamp_of(claim) is None


def test_a_claim_that_cannot_be_renewed(
    make_bucket: Callable[[str], Bucket], held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, gone = filled(make_bucket("s3"), monkeypatch), claims._GONE
    denied = b"<Error><Code>AccessDenied</Code><Message>No.</Message></Error>"
    with ThreadPoolExecutor(1) as work, ThreadPoolExecutor(1) as pool:
        ending = pool.submit(lambda: statuses(vt.migrate(str(store.url), TARGET, executor=work)))
        assert held.begun.wait(120)
        store.faults.first = lambda method, path: (403, denied) if "vhlo-migration" in path else None
        monkeypatch.setattr(claims, "_GONE", 2.0)
        with pytest.raises(vt.MigrationError, match=r"could not be renewed for \d s .*AccessDenied.*resumes"):
            ending.result(60)
        held.free.set()
    store.faults.first = lambda method, path: None
    monkeypatch.setattr(claims, "_GONE", gone)
    write_seen(store, claimed_in(store), time.time() - gone)
    assert statuses(vt.migrate(str(store.url), TARGET)) == ["moved", "moved"]


LEFT = """
import sys
import vhlo_tools as vt
running = vt.migrate(sys.argv[1], sys.argv[2])
print(next(running).status)
"""


def test_a_process_that_ends_in_the_middle_leaves_its_claim(
    make_bucket: Callable[[str], Bucket], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = filled(make_bucket("s3"), monkeypatch)
    command = [sys.executable, "-c", LEFT, str(store.url), TARGET]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "moved\n", "")
    # Nobody has to wait until it is gone.
    assert claimed_in(store)["seen"] == 0
    assert statuses(vt.migrate(str(store.url), TARGET)) == ["moved", "moved"]
