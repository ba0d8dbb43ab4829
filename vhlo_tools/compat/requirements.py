"""Requirements of an artifact: the versions that can read it, its downgrade targets, and the reasons.

The rules are those of the specification; only the bytes are examined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Final

from vhlo_tools.compat.constraints import violations
from vhlo_tools.compat.returns import wrong_returns
from vhlo_tools.compat.survey import FeatureScan
from vhlo_tools.compat.targets import NO_EXPANSIONS, expansion_flag
from vhlo_tools.compat.uses import custom_call_notes
from vhlo_tools.findings import NEWER_THAN_DATA, Finding
from vhlo_tools.records import dataclass
from vhlo_tools.spec import (
    is_newer_than_data,
    known_feature,
    known_features,
    known_verifiers,
    known_versions,
    minimum_version,
    newest_version,
)
from vhlo_tools.version import Version

if TYPE_CHECKING:
    from vhlo_tools.bytecode import File, Head, Operation
    from vhlo_tools.compat.targets import ExpansionPolicy
    from vhlo_tools.compat.uses import Use
    from vhlo_tools.spec import Feature

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


@dataclass(frozen=True, slots=True)
class OpFeature:
    """A feature in an op.

    Attributes:
        id: The id of the feature, or what stands for one.
        introduced: The version that introduced it.
        unknown: Whether the specification does not have it; ``introduced`` is then the newest version that may have
            introduced it.
    """

    id: str
    introduced: Version
    unknown: bool = False


@dataclass(frozen=True, slots=True)
class Unknown:
    """Something in a file that the specification does not have.

    Attributes:
        name: Its name: of an op version (``vhlo.tan_v9``), of a case by its number (``comparison_type_v1.5``), or of a
            type or an attribute by its code (``vhlo type code 99``), because a file has no names of these.
        kind: Whether it is an op, a type or an attribute.
        count: The number of ops or block arguments with it.
    """

    name: str
    kind: str
    count: int


class Requirements:
    """The requirements of an artifact, computed on access; the versions from the tables alone where these suffice.

    Args:
        file: Its decoded file.
        version: The version in its header.
        name: Its name.

    A file may be of a version that is newer than the specification. Of such a file, everything that is said follows
    from what the specification has; :attr:`unknown` is what it lacks, and :attr:`is_newer_than_data` says that a newer
    version may also have changed what is allowed on a known op, which no bytes show.

    Every property and method raises :class:`MalformedArtifactError` if the file is damaged.
    """

    def __init__(self, file: File, version: Version, name: str = "the program") -> None:
        self._file = file
        self._header = version
        self._name = name
        newest = newest_version()
        # Anything unspecified is newer than the specification.
        self._future = max(version.minor_release, Version(f"{newest.major}.{newest.minor + 1}.0"))
        self._survey = FeatureScan(file, self._future, name)

    @property
    def is_newer_than_data(self) -> bool:
        """Whether the specification ends before the version in its header."""
        return is_newer_than_data(self._header)

    @cached_property
    def unknown(self) -> tuple[Unknown, ...]:
        """What is in it that the specification does not have, by name."""
        counts: Counter[tuple[str, str]] = Counter()
        for use, count in self._survey.counts.items():
            if use.unknown:
                counts[use.what, use.kind] += count
        return tuple(Unknown(*key, count) for key, count in sorted(counts.items()))

    def _repr_html_(self) -> str:
        from vhlo_tools.markup import facts, table

        versions = [
            (words, getattr(self, words.replace(" ", "_")))
            for words in ("readable since", "downgradable to", "expandable to")
        ]
        features = [(each.id, each.introduced, each.count) for each in self.features]
        unknown = [(each.name, "unknown to vhlo_tools", each.count) for each in self.unknown]
        shown = table("features", ("feature", "introduced", "count"), [*features, *unknown])
        return facts("requirements", versions) + (shown if features or unknown else "")

    @property
    def reach(self) -> str:
        """The oldest version at which the program can be written, as a clause."""
        said = f"it can be written for StableHLO {self.downgradable_to} or later"
        if self.is_newer_than_data:
            said += f", as far as the data of vhlo_tools say, which end at {newest_version()}"
        return said

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
        blocking = []
        for use in self._survey.summary[0]:
            expansion = expansions.get(use.feature)
            if use.level == "error" and expansion and expansion.always:
                # It matters only below what the expansion leaves.
                blocking.append(replace(use, since=min(use.since, expansion.to)))
            elif use.level == "error":
                blocking.append(use)
        return self._reach(blocking)

    def _reach(self, blocking: list[Use]) -> Version:
        reached = self._future
        for entry in reversed(known_versions()):
            if any(use.is_new_for(entry.version) for use in blocking):
                break
            reached = entry.version
        return reached

    @cached_property
    def features(self) -> tuple[FeatureCount, ...]:
        """The features in it that not every version has, newest first; without what is :attr:`unknown`."""
        counts: Counter[tuple[str, Version]] = Counter()
        for use, count in self._survey.counts.items():
            if not use.unknown:
                counts[use.feature, use.since] += count
        found = [FeatureCount(feature, since, count) for (feature, since), count in counts.items()]
        return tuple(sorted(found, key=lambda each: (each.introduced, each.id), reverse=True))

    @cached_property
    def unreadable(self) -> tuple[Finding, ...]:
        """Errors of functions that no library of any version reads: they return other types than they declare."""
        return tuple(wrong_returns(self._file, self._name))

    def findings(self, target: Version, tried: ExpansionPolicy = NO_EXPANSIONS) -> list[Finding]:
        """Return every reason why the program cannot be written for ``target``, or its readers would reject it.

        Args:
            target: The version for which to write it.
            tried: The expansions that were tried, which are no remedies any more.

        Returns:
            Errors for features that the library refuses, then warnings for those that it writes although readers reject
            them; in program order. Empty if there are none: what is written in another way for the target without being
            asked is not named. Of a file that is newer than the specification, a warning says that it may need more.
        """
        newer = self._newer_than_data(target)
        if not self._survey.may_matter_at(target):
            return newer
        uses = self._survey.written(lambda use: use.is_new_for(target) and use.feature not in _mended())
        refused = {use.feature for use in uses if use.level == "error"}
        kept = [use for use in uses if use.level == "error" or use.feature not in refused]
        return _sorted([*(self._finding(use, target, tried) for use in kept), *newer])

    def reader_findings(self, reader: Version) -> list[Finding]:
        """Return every reason why a reader of version ``reader`` rejects these bytes, in program order.

        What is unknown is an error. Of a file that is newer than the specification, a warning says that its readers may
        need more.
        """
        found = [self._finding(use, reader, None) for use in self._survey.read(lambda use: use.is_refused_by(reader))]
        found += [*self.unreadable, *self._newer_than_data(reader)]
        found += [
            Finding(
                feature=f"withdrawn_{name}",
                level="error",
                kind=kind,
                message=f"{dialect}.{name} can only be read by StableHLO {last} or older: later readers {what}",
                target=reader,
                remedy=f"read it with a release of StableHLO {last} or older, and write the program without it",
            )
            for dialect, kind, name, last, what in self._survey.withdrawn
            if reader.minor_release > last
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

    def op_features(self, op: Operation, operands: Sequence[int]) -> tuple[OpFeature, ...]:
        """Return the features in one op, oldest first; without those of its location, and of what is inside it.

        Args:
            op: An op of the file.
            operands: The types of its operands, as indices into the table of types.
        """
        found = {OpFeature(use.feature, use.since, use.unknown) for use in self._survey.needs(op, operands)}
        return tuple(sorted(found, key=lambda each: (each.introduced, each.id)))

    def may_have_features(self, head: Head) -> bool:
        """Return whether ops with a head may have :meth:`op_features`; cheap, as only tables are examined."""
        return self._survey.may_need(head)

    @cached_property
    def notes(self) -> tuple[Finding, ...]:
        """Notes on the custom calls, which have versions of their own."""
        return tuple(custom_call_notes(self._file, self._name))

    @cached_property
    def violations(self) -> tuple[Finding, ...]:
        """Ops that violate the specification in ways that MLIR's verifier does not see, in program order.

        An error where engines differ, refuse or crash, a warning where they agree, and a note where producers count on
        that.
        """
        return tuple(violations(self._file, self._name))

    @property
    def contradiction(self) -> Finding | None:
        """A warning if the contents are newer than the version in the header."""
        # Most files are no newer than their header by their tables alone, and need no traversal to tell.
        since = max(self._survey.max_introduced, self._bytecode_since)
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

    def _newer_than_data(self, target: Version) -> list[Finding]:
        """Warn about a version older than that of the file, which is newer than the specification."""
        if not self.is_newer_than_data or target.minor_release >= self._header.minor_release:
            return []
        message = (
            f"the file was written for StableHLO {self._header}, and the data of vhlo_tools end at {newest_version()}: "
            "what later versions changed of known ops was not examined"
        )
        remedy = f"update vhlo_tools; or install a library with StableHLO {self._header} or later, which is then asked"
        return [Finding(NEWER_THAN_DATA, "warning", "encoding", message, target=target, remedy=remedy, unknown=True)]

    def _unknown_finding(self, use: Use, target: Version) -> Finding:
        """Return the finding on a use that the specification lacks."""
        holder = f", in {use.op}," if use.op and use.kind != "op" else ""
        remedies = ["the file is damaged, or of a fork of VHLO, which `vhlo spec import` adds to the data"]
        if self.is_newer_than_data:
            learn = f"add StableHLO {self._header} to the data with `vhlo spec import` or `vhlo spec probe`"
            remedies = ["update vhlo_tools", learn, f"choose {use.since} or later"]
        return Finding(
            feature=use.feature,
            level="error",
            kind=use.kind,
            message=f"{use.what}{holder} is unknown: the file was written for StableHLO {self._header}, and the data "
            f"of vhlo_tools end at {newest_version()}",
            op=use.op,
            location=use.location,
            target=target,
            remedy="; or ".join(remedies),
            count=use.count,
            path=use.path,
            function=use.function,
            unknown=True,
        )

    def _finding(self, use: Use, target: Version, tried: ExpansionPolicy | None) -> Finding:
        """Return the finding of a use: for a writer, after the expansions that were tried; for a reader, ``None``."""
        if use.unknown:
            return self._unknown_finding(use, target)
        reading = tried is None
        known = next((each for each in (*known_features(), *known_verifiers()) if each.id == use.feature), None)
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
        is_kept = use.kind == "dialect" or use.feature == _BUILTIN_CODES
        if is_kept and (use.op == "builtin.module" or use.op is None):
            remedies = [known_feature(_BUILTIN_CODES).remedy]
        elif reading and self.downgradable_to <= target and not (is_kept or known in known_verifiers()):
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


#: Attributes of the module with what older readers do not know; no conversion changes them.
_BUILTIN_CODES: Final = "builtin_codes"

_DEADLY: Final = Finding(
    feature="i2_attribute",
    level="error",
    kind="attribute",
    message="contains a 2-bit integer attribute (i2 or ui2), which crashes every reader",
    remedy="use a wider integer type",
)


def _flags(feature: Feature, target: Version, tried: ExpansionPolicy) -> Iterator[str]:
    """Yield options of the commands that rewrite a feature for ``target``, except those that were tried."""
    for each in feature.expansions:
        if target >= each.to and feature.id not in tried.of(each.effect):
            given_up = f", which gives up {each.gives_up}" if each.gives_up else ""
            yield f"rewrite it with {expansion_flag(feature, each)}{given_up}"
    if any(each.signature for each in feature.expansions) and not tried.signature_change:
        yield "add --allow-signature-change, which stores arguments and results of public functions as integers"


@cache
def _mended() -> frozenset[str]:
    """Return the features that are written in another way for older targets without being asked."""
    return frozenset(each.id for each in known_features() if each.unasked is not None)


def _sorted(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: _ORDER[finding.level])
