"""Upstream's promises of compatibility for files, from ``dialect_specs/promises.toml``."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, get_args

from vhlo_tools.dialect.data import NUMBERED, check_entry, load_entries
from vhlo_tools.records import dataclass
from vhlo_tools.version import Version

WindowName = Literal["backward", "forward", "jax-export"]


@dataclass(frozen=True, slots=True)
class Promise:
    """A promise of compatibility: of new readers for old files, of new writers for old consumers, or of jax.export."""

    window: WindowName  # ``backward``, ``forward`` or ``jax-export``
    months: int  # how far apart the writing and the reading release may have been made
    source: str  # the document, with its repository and revision
    since: Version | None = None  # the first version of StableHLO that it covers; None if all


@cache
def known_promises() -> tuple[Promise, ...]:
    return load_entries("promises.toml", "promise", _to_promise)


def promised(window: WindowName, version: Version) -> Promise | None:
    """Return the promise for files of ``version``; ``None`` if there was none yet."""
    held = [each for each in known_promises() if each.window == window]
    return next((each for each in reversed(held) if each.since is None or each.since <= version), None)


def _to_promise(entry: dict[str, Any]) -> Promise:
    check_entry(entry, window=frozenset(get_args(WindowName)), months=NUMBERED, source=str, since=str)
    since = entry.get("since")
    return Promise(entry["window"], entry["months"], entry["source"], since and Version(since))
