"""The requirements of an artifact: the versions that can read it, its downgrade targets, and the reasons.

The rules are those of the specification; only the bytes are examined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from vhlo_tools.compat.allowed_expansions import NO_EXPANSIONS, expansion_flag
from vhlo_tools.compat.custom_calls import custom_call_notes
from vhlo_tools.compat.survey import Survey
from vhlo_tools.dialect import (
    find_op_version,
    known_features,
    known_versions,
    minimum_version,
    newest_version,
)
from vhlo_tools.findings import Finding
from vhlo_tools.records import dataclass
from vhlo_tools.version import Version

if TYPE_CHECKING:
    from vhlo_tools.bytecode import File
    from vhlo_tools.compat.allowed_expansions import ExpansionPolicy
    from vhlo_tools.compat.survey import Use
    from vhlo_tools.dialect import (
        Expansion,
        Feature,
    )

__all__ = ["FeatureCount", "Requirements"]

_ORDER: Final = {"error": 0, "warning": 1, "note": 2}


@dataclass(frozen=True, slots=True)
class FeatureCount:
    """A feature in a file.

    Attributes:
        id: The id of the feature.
        introduced: The version that introduced it.
        count: The number of ops or block arguments with it.
    """

    id: str
    introduced: Version
    count: int


class Requirements:
    """The requirements of an artifact, computed on access; the versions from the tables alone where these suffice.

    Args:
        file: Its decoded file.
        version: The version in its header.
        name: Its name.

    Every property and method raises :class:`MalformedArtifactError` if the file is damaged.
    """

    def __init__(self, file: File, version: Version, name: str = "the program") -> None:
        self._file = file
        self._header = version
        self._name = name
        newest = newest_version()
        # Anything unspecified is newer than the specification.
        self._future = max(version.minor_release, Version(f"{newest.major}.{newest.minor + 1}.0"))
        self._survey = Survey(file, self._future, name)

    @cached_property
    def readable_since(self) -> Version:
        """The oldest version whose reader accepts these bytes.

        It is the newest introduction of anything in them, including what the library's own check overlooks. Other
        dialects count as :data:`1.11.0`; whether the consumer has them is a separate question.
        """
        needed = [minimum_version(), self._bytecode_since, *(name.since for name in self._survey.names)]
        needed += [use.since for use in self._survey.summary[1]]
        return max(needed)

    @cached_property
    def downgradable_to(self) -> Version:
        """The oldest version for which the library can write the program unchanged.

        It can be written for every later version; features that only consumers reject do not count.
        """
        return self._reach([use for use in self._survey.summary[0] if use.level == "error"])

    @cached_property
    def expandable_to(self) -> Version:
        """The oldest version for which the bytes alone promise that the program can be written with exact expansions.

        Only expansions that apply to every valid use of their feature count, so that it can be written for every later
        version with ``expand=True``. Whether one applies that has limits depends on the uses, and needs MLIR: older
        versions may be possible, as :func:`vhlo_tools.check` with ``expand=True`` finds out.
        """
        expansions = {feature.id: feature.expansion("exact") for feature in known_features()}
        blocking = [use for use in self._survey.summary[0] if use.level == "error"]
        return self._reach([_expanded(use, expansions.get(use.feature)) for use in blocking])

    def _reach(self, blocking: list[Use]) -> Version:
        reached = self._future
        for entry in reversed(known_versions()):
            if any(use.matters_at(entry.version) for use in blocking):
                break
            reached = entry.version
        return reached

    @cached_property
    def features(self) -> tuple[FeatureCount, ...]:
        """The features in it that not every version has, newest first."""
        counts: Counter[tuple[str, Version]] = Counter()
        for use, count in self._survey.counts.items():
            counts[use.feature, use.since] += count
        found = [FeatureCount(feature, since, count) for (feature, since), count in counts.items()]
        return tuple(sorted(found, key=lambda each: (each.introduced, each.id), reverse=True))

    def findings(self, target: Version, tried: ExpansionPolicy = NO_EXPANSIONS) -> list[Finding]:
        """Return every reason why the program cannot be written for ``target``, or its readers would reject it.

        Args:
            target: The version for which to write it.
            tried: The expansions that were tried, which are no remedies any more.

        Returns:
            Errors for features that the library refuses, then warnings for those that it writes although readers reject
            them; in program order. Empty if there are none.
        """
        if not self._survey.may_matter_at(target):
            return []
        uses = [use for use in self._survey.written if use.matters_at(target)]
        refused = {use.feature for use in uses if use.level == "error"}
        kept = [use for use in uses if use.level == "error" or use.feature not in refused]
        return _sorted(self._finding(use, target, tried) for use in kept)

    def reader_findings(self, reader: Version) -> list[Finding]:
        """Return every reason why a reader of version ``reader`` rejects these bytes, in program order."""
        found = [self._finding(use, reader, None) for use in self._survey.read if use.is_refused_by(reader)]
        found += [
            _withdrawn(name, last, reader) for name, last in self._survey.withdrawn if reader.minor_release > last
        ]
        if self._survey.has_deadly_integers:
            found.append(_DEADLY)
        if self._bytecode_since > reader:
            found.append(
                Finding(
                    feature="bytecode_version",
                    level="error",
                    kind="encoding",
                    message=f"the file has MLIR bytecode version {self._file.version}, which was introduced in "
                    f"StableHLO {self._bytecode_since}",
                    introduced=self._bytecode_since,
                    target=reader,
                    remedy=f"retarget it to {reader} with `vhlo retarget`",
                )
            )
        return _sorted(found)

    @cached_property
    def notes(self) -> tuple[Finding, ...]:
        """Notes on the custom calls, which have versions of their own."""
        return tuple(custom_call_notes(self._file, self._name))

    @property
    def contradiction(self) -> Finding | None:
        """A warning if the contents are newer than the version in the header."""
        # Most files are no newer than their header by their tables alone, and need no traversal to tell.
        since = max(self._survey.newest_possible, self._bytecode_since)
        if since <= self._header.minor_release or self.readable_since <= self._header.minor_release:
            return None
        return Finding(
            feature="header_version",
            level="warning",
            kind="encoding",
            message=f"the header specifies StableHLO {self._header}, but only {self.readable_since} or later can read "
            f"it",
            introduced=self.readable_since,
            target=self._header,
            remedy=f"write it again for {self.readable_since} or later, or without the features that require it",
        )

    @cached_property
    def _bytecode_since(self) -> Version:
        fitting = (entry.version for entry in known_versions() if (entry.reads or entry.bytecode) >= self._file.version)
        return next(fitting, self._future)

    def _finding(self, use: Use, target: Version, tried: ExpansionPolicy | None) -> Finding:
        """Return the finding of a use: for a writer, after the expansions that were tried; for a reader, ``None``."""
        reading = tried is None
        known = next((feature for feature in known_features() if feature.id == use.feature), None)
        title = known.title if known else use.what
        holder = use.op or "the program"
        within = f" in @{use.function}, called here," if use.by_call else ""
        message = f"{holder}{within} needs StableHLO {use.since}: {title}"
        if use.kind == "encoding" and known:
            # The message does not depend on the op.
            message = f"the program has {title}, introduced in StableHLO {use.since}"
        elif use.kind == "dialect":
            dialect = use.what.rpartition(" ")[2]
            what = "is" if (use.op or "").startswith(f"{dialect}.") else "contains something"
            message = f"{holder} {what} of the dialect {dialect}, which readers older than {use.since} reject"
        remedies = [known.remedy, *_flags(known, target, tried or NO_EXPANSIONS)] if known else []
        if reading and self.downgradable_to <= target:
            remedies = [f"retarget the file to {target} with `vhlo retarget`"]
        elif use.level == "warning" and not reading and use.kind != "dialect":
            message += f"; it can still be written, but readers older than {use.since} reject the file"
        return Finding(
            feature=use.feature,
            level="error" if reading else use.level,
            kind=known.kind if known else use.kind,
            message=message,
            op=use.op,
            location=use.location,
            introduced=use.since,
            target=target,
            remedy="; or ".join([*remedies, f"choose {use.since} or later"]),
            count=use.count,
            path=use.path,
            function=use.function,
        )


_DEADLY: Final = Finding(
    feature="i2_attribute",
    level="error",
    kind="attribute",
    message="contains a 2-bit integer attribute (i2 or ui2), which crashes every reader",
    remedy="use a wider integer type",
)


def _expanded(use: Use, expansion: Expansion | None) -> Use:
    """Return a use as it is after an expansion that always applies: it matters only below what the expansion leaves."""
    return replace(use, since=min(use.since, expansion.to)) if expansion and expansion.always else use


def _withdrawn(name: str, last: Version, reader: Version) -> Finding:
    return Finding(
        feature=f"withdrawn_{name}",
        level="error",
        kind="op" if find_op_version(name) else "type",
        message=f"vhlo.{name} can only be read by StableHLO {last} or older: later readers removed it",
        target=reader,
        remedy=f"read it with a release of StableHLO {last} or older, and write the program without it",
    )


def _flags(feature: Feature, target: Version, tried: ExpansionPolicy) -> Iterator[str]:
    """Yield which options of the commands rewrite a feature for ``target``, except what was tried."""
    for each in feature.expansions:
        if target >= each.to and feature.id not in tried.of(each.effect):
            given_up = f", which gives up {each.gives_up}" if each.gives_up else ""
            yield f"rewrite it with {expansion_flag(feature, each)}{given_up}"
    if any(each.signature for each in feature.expansions) and not tried.signature_change:
        yield "add --allow-signature-change, which stores arguments and results of public functions as integers"


def _sorted(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: _ORDER[finding.level])
