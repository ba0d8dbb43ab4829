"""A plugin of pytest, `-p covering`: names each test to `coverage run`, and runs tests in an order and with limits."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Never

import pytest
from coverage import Coverage

_limits: dict[str, float] = {}


class TooLongError(BaseException):
    """A test took too long. Unlike an ``Exception``, neither the code nor hypothesis catches it, to try again."""


def _stop(*_: object) -> Never:
    raise TooLongError


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--limits", type=Path, help="a JSON file: tests with their limits in seconds, the first first")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.limits is not None:
        _limits.update(json.loads(config.option.limits.read_text()))
        places = {name: place for place, name in enumerate(_limits)}
        items.sort(key=lambda item: places.get(item.nodeid, len(places)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    if (recorder := Coverage.current()) is not None:
        recorder.switch_context(item.nodeid)
    signal.signal(signal.SIGALRM, _stop)
    signal.setitimer(signal.ITIMER_REAL, _limits.get(item.nodeid, 0))
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
