"""How long upstream promises compatibility for a file, from ``dialect_specs/promises.toml``."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, get_args

from vhlo_tools.dialect.data import NUMBERED, check_entry, load_entries
from vhlo_tools.records import dataclass
from vhlo_tools.version import Version

WindowName = Literal["backward", "forward", "jax-export"]


@dataclass(frozen=True, slots=True)
class Promise:
    """A promise of compatibility.

    Attributes:
        window: What is promised: that new releases read old files (``backward``); that they can write files for old
            consumers (``forward``); or that new releases of jax call old files (``jax-export``).
        months: How far apart the writing and the reading release may have been made, in months.
        source: The document that says so, with its repository and revision.
        since: The first version of StableHLO for whose files it holds; ``None`` for files of any version.
    """

    window: WindowName
    months: int
    source: str
    since: Version | None = None


@cache
def known_promises() -> tuple[Promise, ...]:
    """Return all promises; those of one window oldest first."""
    return load_entries("promises.toml", "promise", _to_promise)


def promised(window: WindowName, version: Version) -> Promise | None:
    """Return the promise of a window for files of a version; ``None`` if there was none yet."""
    held = [each for each in known_promises() if each.window == window]
    return next((each for each in reversed(held) if each.since is None or each.since <= version), None)


def _to_promise(entry: dict[str, Any]) -> Promise:
    check_entry(entry, window=frozenset(get_args(WindowName)), months=NUMBERED, source=str, since=str)
    since = entry.get("since")
    return Promise(entry["window"], entry["months"], entry["source"], since and Version(since))
