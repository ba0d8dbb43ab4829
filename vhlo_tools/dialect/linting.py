"""``vhlo spec lint``: rules inside a specification, and the add-only rule against its last release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vhlo_tools.dialect import feature_rules, op_rules  # noqa: F401  (importing them registers their rules)
from vhlo_tools.dialect.released import (
    RELEASED,
    baseline_of,
    baseline_text,
    broken_promises,
    read_baseline,
    read_released,
)
from vhlo_tools.dialect.rules import RULES, Violation
from vhlo_tools.files import write_atomically

if TYPE_CHECKING:
    from vhlo_tools.dialect.specification import Specification


def lint(specs: Specification, against: str | None = None) -> tuple[Violation, ...]:
    """``against`` is a folder, or a git revision of the folder of ``specs``; by default its last release, if any."""
    inside = [
        Violation(rule.id, file, entry, message, rule.remedy)
        for rule in RULES
        for file, entry, message in rule.check(specs)
    ]
    released = read_released(specs.folder) if against is None else read_baseline(against, specs.folder)
    broken = () if released is None else broken_promises(specs, released)
    return tuple(sorted((*inside, *broken), key=lambda violation: (violation.file, violation.entry)))


def has_release(specs: Specification) -> bool:
    return specs.folder.joinpath(RELEASED).is_file()


def write_release(specs: Specification) -> Path:
    """Record ``specs``, which must have no violation, as the last release of its folder."""
    path = Path(str(specs.folder)) / RELEASED
    write_atomically(path, [baseline_text(baseline_of(specs)).encode()], force=True)
    return path
