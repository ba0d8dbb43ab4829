"""Releases that read and ran expanded programs, from ``dialect_specs/vhlo/expansions_confirmed.toml``."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.dialect.data import check_entry, load_entries
from vhlo_tools.dialect.features import known_feature
from vhlo_tools.dialect.releases import known_releases
from vhlo_tools.records import dataclass
from vhlo_tools.version import Version

if TYPE_CHECKING:
    from vhlo_tools.dialect.data import Kind
    from vhlo_tools.dialect.features import Effect


@dataclass(frozen=True, slots=True)
class ExpansionConfirmation:
    """An expanded program that a release of jaxlib older than the feature read."""

    feature: str
    effect: Effect
    release: str
    written: Version  # the version of StableHLO that the program was written for
    not_run: str | None = None  # why it was not run; None if it ran with the right results


_KINDS: Final[dict[str, Kind]] = {
    **dict.fromkeys(("feature", "release", "written", "not_run"), str),
    "effect": frozenset({"exact", "relaxed"}),
}


@cache
def known_confirmations() -> tuple[ExpansionConfirmation, ...]:
    return load_entries("vhlo/expansions_confirmed.toml", "confirmation", _to_confirmation)


def _to_confirmation(entry: dict[str, Any]) -> ExpansionConfirmation:
    check_entry(entry, **_KINDS)
    if known_feature(entry["feature"]).expansion(entry["effect"]) is None:
        raise ValueError(f"{entry['feature']} has no {entry['effect']} expansion")
    if not any(each.package == "jaxlib" and each.release == entry["release"] for each in known_releases()):
        raise ValueError(f"release is {entry['release']!r}: expected a release of jaxlib in releases.toml")
    return ExpansionConfirmation(**{**entry, "written": Version(entry["written"])})
