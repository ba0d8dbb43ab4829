"""Fixtures that tests share."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from support.corpus import EXAMPLES
from support.needs import lacking
from support.raw import RawLibrary

import vhlo_tools as vt
from vhlo_tools.bindings import Provider, get_provider

pytest_plugins = ["support.selection"]

# A shell has its background jobs ignore Ctrl-C, and so would all processes that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Properties are not timed: on a busy machine drawing takes as long as it takes. Environments of frameworks have none.
with suppress(ModuleNotFoundError):
    from hypothesis import HealthCheck, settings

    settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("untimed")

# `vhlo check` leaves nothing beside the programs of tests; those of the cache itself do without this.
os.environ["VHLO_TOOLS_NO_CACHE"] = "1"


def pytest_runtest_setup(item: pytest.Item) -> None:
    for need in (need for marker in item.iter_markers("needs") for need in marker.args):
        if (lack := lacking(need)) is not None:
            pytest.skip(lack)


@pytest.fixture
def xla_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run all programs and buffers of XLA in this process, as with `in_process=True`."""
    from vhlo_tools.execution.engines import ENGINES, PARALLEL_ENGINES
    from vhlo_tools.execution.xla.engine import XlaEngine, XlaParallelEngine

    monkeypatch.setitem(ENGINES, "xla", partial(_here, XlaEngine))
    monkeypatch.setitem(PARALLEL_ENGINES, "xla", partial(_here, XlaParallelEngine))
    monkeypatch.setattr(vt.Buffer, "on_xla", partial(vt.Buffer.on_xla, in_process=True))


@pytest.fixture(params=["in a child process", "in this process"])
def both_places(request: pytest.FixtureRequest) -> None:
    """Run a test twice: with XLA in a child process, and in this process."""
    if request.param == "in this process":
        request.getfixturevalue("xla_here")


def _here(engine: Any, *arguments: Any) -> Any:
    return engine(*arguments[:-1], in_process=True)


@pytest.fixture
def kept() -> Iterator[list[int]]:
    """Let commands have their work done by processes that stay; the numbers of processes that are asked for."""
    from support.vhlo_process import kept_workers

    with kept_workers() as asked:
        yield asked


@pytest.fixture(scope="session")
def provider() -> Provider:
    return get_provider()


@pytest.fixture(scope="session")
def raw(provider: Provider) -> RawLibrary:
    return RawLibrary(provider)


@pytest.fixture
def saxpy() -> str:
    return (EXAMPLES / "saxpy.mlir").read_text()
