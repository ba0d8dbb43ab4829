"""Targets by the names that settings give them."""

from __future__ import annotations

import pytest

import vhlo_tools as vt
from vhlo_tools.gate.target_names import check_target, resolve_named

NAMES = {"fleet": ("jaxlib==0.4.31", "1.9.0"), "servers": ("1.5.0",)}


def test_names_stand_for_the_oldest_of_their_targets() -> None:
    fleet = resolve_named("fleet", NAMES)
    assert (fleet.version, fleet.spelling, fleet.exact) == (vt.Version("1.4.2"), "fleet", False)
    both = resolve_named("servers, 1.2.0", NAMES)
    assert (both.version, both.spelling) == (vt.Version("1.2.0"), "servers, 1.2.0")
    plain = resolve_named("1.5.0", NAMES)
    assert (plain.version, plain.spelling, plain.exact) == (vt.Version("1.5.0"), "1.5.0", True)


@pytest.mark.parametrize(
    ("spelling", "names", "hint"),
    [
        ("flet", NAMES, "; did you mean fleet?"),
        ("flet,server", NAMES, "; did you mean fleet and servers?"),
        ("fleet,flet", NAMES, "; did you mean fleet?"),
        ("zzz", NAMES, "; the settings name fleet, servers"),
        ("zzz", {}, " or a comma list of these"),
    ],
)
def test_unknown_targets_come_with_the_names_that_there_are(
    spelling: str, names: dict[str, tuple[str, ...]], hint: str
) -> None:
    with pytest.raises(vt.UnknownTargetError) as refused:
        resolve_named(spelling, names)
    assert str(refused.value).endswith(hint)
    assert check_target(spelling, names, None) == str(refused.value)


def test_targets_are_checked_without_asking_a_library() -> None:
    for spelling in ("fleet", "current", "WEEK_12", "servers,4w"):
        assert check_target(spelling, NAMES, None) is None
    assert check_target("1.00.0", NAMES, None) is not None
