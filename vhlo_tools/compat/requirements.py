"""What an artifact requires: who can read it, how far down it can go, and every reason why not further.

The rules are those of the specification; the bytes are all that is looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from vhlo_tools.bytecode import File
from vhlo_tools.compat.custom_calls import custom_call_notes
from vhlo_tools.compat.survey import Survey, Use
from vhlo_tools.dialect import find_op_version, known_features, known_versions, minimum_version, newest_version
from vhlo_tools.findings import Finding
from vhlo_tools.version import Version

__all__ = ["FeatureCount", "Requirements"]

_ORDER: Final = {"error": 0, "warning": 1, "note": 2}


@dataclass(frozen=True, slots=True)
class FeatureCount:
    """A feature that a file holds.

    Attributes:
        id: The id of the feature.
        introduced: The version that brought it.
        count: How many ops or block arguments hold it.
    """

    id: str
    introduced: Version
    count: int


class Requirements:
    """What an artifact requires; computed when it is asked for, the versions from the tables where they suffice.

    Args:
        file: Its bytes taken apart.
        version: The version that its header names.
        name: What it is called.

    Every property and method raises :class:`MalformedArtifactError` if the file is damaged.
    """

    def __init__(self, file: File, version: Version, name: str = "the program") -> None:
        self._file = file
        self._header = version
        self._name = name
        newest = newest_version()
        # Whatever is not specified is newer than what is.
        self._future = max(version.minor_release, Version(f"{newest.major}.{newest.minor + 1}.0"))
        self._survey = Survey(file, self._future, name)

    @cached_property
    def readable_since(self) -> Version:
        """The oldest version whose reader accepts these bytes.

        It is the newest introduction among all that they hold, also where the library's own check does not look. Other
        dialects count as :data:`1.11.0`; whether the consumer knows them is another question.
        """
        needed = [minimum_version(), self._bytecode_since, *(name.since for name in self._survey.names)]
        needed += [use.since for use in self._survey.summary[1]]
        return max(needed)

    @cached_property
    def downgradable_to(self) -> Version:
        """The oldest version that the library can write the program for, as it is.

        It can be written for every version since; what only consumers choke on does not count.
        """
        return self._reach([use for use in self._survey.summary[0] if use.level == "error"])

    @cached_property
    def expandable_to(self) -> Version:
        """The oldest version that the program can be written for after the library's expansions."""
        expanded = {feature.id for feature in known_features() if feature.expansion}
        return self._reach(
            [use for use in self._survey.summary[0] if use.level == "error" and use.feature not in expanded]
        )

    def _reach(self, blocking: list[Use]) -> Version:
        reached = self._future
        for entry in reversed(known_versions()):
            if any(use.matters_at(entry.version) for use in blocking):
                break
            reached = entry.version
        return reached

    @cached_property
    def features(self) -> tuple[FeatureCount, ...]:
        """What it holds that not every version has, newest first."""
        counts: Counter[tuple[str, Version]] = Counter()
        for use in self._survey.read:
            counts[use.feature, use.since] += use.count
        found = [FeatureCount(feature, since, count) for (feature, since), count in counts.items()]
        return tuple(sorted(found, key=lambda each: (each.introduced, each.id), reverse=True))

    def findings(self, target: Version) -> list[Finding]:
        """Return every reason why the program cannot be written for ``target``, and what its readers would choke on.

        Args:
            target: The version to write it for.

        Returns:
            Errors for what the library refuses, then warnings for what it writes although readers refuse it; in the
            order of the program. Empty if all is well.
        """
        if not self._survey.may_matter_at(target):
            return []
        uses = [use for use in self._survey.written if use.matters_at(target)]
        refused = {use.feature for use in uses if use.level == "error"}
        kept = [use for use in uses if use.level == "error" or use.feature not in refused]
        return _sorted(self._finding(use, target, reading=False) for use in kept)

    def reader_findings(self, reader: Version) -> list[Finding]:
        """Return every reason why a reader of the version ``reader`` refuses these very bytes, in program order."""
        found = [self._finding(use, reader, reading=True) for use in self._survey.read if use.is_refused_by(reader)]
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
                    message=f"the file is of MLIR bytecode version {self._file.version}, which came with StableHLO "
                    f"{self._bytecode_since}",
                    introduced=self._bytecode_since,
                    target=reader,
                    remedy=f"bring it to {reader} with `vhlo retarget`",
                )
            )
        return _sorted(found)

    @cached_property
    def notes(self) -> tuple[Finding, ...]:
        """The custom calls, which carry versions of their own."""
        return tuple(custom_call_notes(self._file, self._name))

    @property
    def contradiction(self) -> Finding | None:
        """A warning if the contents are newer than the version that the header names."""
        if self.readable_since <= self._header.minor_release:
            return None
        return Finding(
            feature="header_version",
            level="warning",
            kind="encoding",
            message=f"the header says StableHLO {self._header}, but only {self.readable_since} or later can read it",
            introduced=self.readable_since,
            target=self._header,
            remedy=f"write it again for {self.readable_since} or later, or without what needs that",
        )

    @cached_property
    def _bytecode_since(self) -> Version:
        fitting = (entry.version for entry in known_versions() if (entry.reads or entry.bytecode) >= self._file.version)
        return next(fitting, self._future)

    def _finding(self, use: Use, target: Version, *, reading: bool) -> Finding:
        known = next((feature for feature in known_features() if feature.id == use.feature), None)
        title = known.title if known else use.what
        holder = use.op or "the program"
        within = f" in @{use.function}, called here," if use.by_call else ""
        message = f"{holder}{within} needs StableHLO {use.since}: {title}"
        if use.kind == "encoding" and known:
            # It is the same whatever op it stands at.
            message = f"the program has {title}, which StableHLO {use.since} brought"
        elif use.kind == "dialect":
            dialect = use.what.rpartition(" ")[2]
            what = "is" if (use.op or "").startswith(f"{dialect}.") else "holds something"
            message = f"{holder} {what} of the dialect {dialect}, which readers older than {use.since} refuse"
        remedies = [known.remedy] if known else []
        if reading and self.downgradable_to <= target:
            remedies = [f"bring the file to {target} with `vhlo retarget`"]
        elif use.level == "warning" and not reading and use.kind != "dialect":
            message += f"; it would be written all the same, and readers older than {use.since} refuse the file"
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
    message="it holds an integer attribute of two bits (i2 or ui2), at which every reader ends its process",
    remedy="spell the attribute with a wider type",
)


def _withdrawn(name: str, last: Version, reader: Version) -> Finding:
    return Finding(
        feature=f"withdrawn_{name}",
        level="error",
        kind="op" if find_op_version(name) else "type",
        message=f"vhlo.{name} is read by StableHLO {last} and older only: later readers dropped it",
        target=reader,
        remedy=f"read it with a release of StableHLO {last} or older, and write the program without it",
    )


def _sorted(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: _ORDER[finding.level])
