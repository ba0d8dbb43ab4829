"""Fixtures that tests share."""

from __future__ import annotations

import signal

import pytest
from corpus import EXAMPLES
from raw import RawLibrary

from vhlo_tools.bindings import Provider, get_provider

# A shell has its background jobs ignore Ctrl-C, and so would all processes that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def provider() -> Provider:
    return get_provider()


@pytest.fixture(scope="session")
def raw(provider: Provider) -> RawLibrary:
    return RawLibrary(provider)


@pytest.fixture
def saxpy() -> str:
    return (EXAMPLES / "saxpy.mlir").read_text()
