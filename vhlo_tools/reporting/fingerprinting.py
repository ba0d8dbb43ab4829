"""Identities of findings, which are stable from one run to the next."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import astuple
from typing import TYPE_CHECKING, Final

from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.findings import Finding
    from vhlo_tools.reporting.model import Question

# The position of an op in its block, before its name; and the number of a region between two ops.
_POSITIONS: Final = re.compile(r"/\d+(?=/|$)|(?<=/)\d+:|^\d+:")


@dataclass(frozen=True, slots=True, order=True)
class Identity:
    """The identity of a finding, independent of its position in a function.

    Lines, positions of ops and folders of sources are excluded: they change with every edit, or between machines.
    Findings with equal identities are distinguished by their number.
    """

    file: str  # relative to a folder, with forward slashes
    target: str  # in its original spelling
    feature: str
    op: str = ""
    function: str = ""
    path: str = ""  # without positions: ``@main/stablehlo.while/stablehlo.add``
    source: str = ""  # file of the user's source, without its folder

    @property
    def digest(self) -> str:
        import hashlib  # imported here because only some formats need it

        return hashlib.sha256(json.dumps(astuple(self)).encode()).hexdigest()[:32]


def identity_of(file: str, question: Question, finding: Finding) -> Identity:
    """``file`` is a relative path with forward slashes."""
    return Identity(
        file,
        question.spelling,
        finding.feature,
        finding.op or "",
        finding.function or "",
        _POSITIONS.sub("", finding.path or ""),
        re.split(r"[/\\]", finding.location.file)[-1] if finding.location else "",
    )


def fingerprints(identities: Iterable[Identity]) -> Iterator[str]:
    """Yield digests, each with the number among equal identities."""
    seen: Counter[Identity] = Counter()
    for identity in identities:
        seen[identity] += 1
        yield f"{identity.digest}:{seen[identity]}"
