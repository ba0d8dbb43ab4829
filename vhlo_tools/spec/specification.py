"""Contents of one folder of specifications as one object: our folder, or that of a fork of VHLO."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from vhlo_tools.errors import InvalidSpecificationError
from vhlo_tools.records import dataclass
from vhlo_tools.spec.data import dialect_specs, files_in
from vhlo_tools.spec.encodings import find_enum, known_enums, load_enums, load_spellings, spellings_of
from vhlo_tools.spec.features import known_features, load_features
from vhlo_tools.spec.ops import KnownOpVersions, find_op, known_defaults, known_ops, load_defaults, load_ops
from vhlo_tools.spec.releases import known_versions, load_versions

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from vhlo_tools.spec.encodings import Enum, Spelling
    from vhlo_tools.spec.features import Feature
    from vhlo_tools.spec.ops import Constraint, Default, Op, OpStep, OpVersion
    from vhlo_tools.spec.releases import VersionEntry
    from vhlo_tools.version import Version

#: The kinds of features that are not an op, type, attribute or constraint but a rule of the encoding of a file.
ENCODING_KINDS = ("encoding", "dialect")

_FILES = ("versions.toml", "vhlo/types.toml", "vhlo/attributes.toml", "vhlo/enums.toml", "vhlo/features.toml")


@dataclass(frozen=True, slots=True)
class SpecificationEntry:
    #: ``op``, ``type``, ``attribute``, ``enum``, ``case``, ``constraint``, ``step``, ``feature``, ``encoding``,
    #: ``default`` or ``version``
    kind: str
    name: str  # with its version if it has one
    min: Version  # for a constraint, the first version that refuses
    max: Version | None  # None while it is current


# Not slotted: cached properties keep their results in __dict__.
@dataclass(frozen=True)
class Specification:
    folder: Traversable
    versions: tuple[VersionEntry, ...]  # oldest first
    ops: tuple[Op, ...]
    types: tuple[Spelling, ...]
    attributes: tuple[Spelling, ...]
    builtin_types: tuple[Spelling, ...]  # types of MLIR itself that artifacts contain
    builtin_attributes: tuple[Spelling, ...]
    enums: tuple[Enum, ...]
    features: tuple[Feature, ...]  # oldest first; the kinds in ENCODING_KINDS are encoding rules
    defaults: tuple[Default, ...]

    @property
    def newest(self) -> Version:
        return self.versions[-1].version

    @cached_property
    def op_versions(self) -> Mapping[str, OpVersion]:
        """Keys are the names in bytecode."""
        return {version.name: version for op in self.ops for version in op.versions}

    @cached_property
    def kinds(self) -> Mapping[str, Mapping[str, Spelling]]:
        return {
            "attribute": {spelling.name: spelling for spelling in self.attributes},
            "type": {spelling.name: spelling for spelling in self.types},
        }

    @cached_property
    def _ops(self) -> Mapping[str, Op]:
        return {op.name: op for op in self.ops}

    @cached_property
    def _enums(self) -> Mapping[str, Enum]:
        return {enum.name: enum for enum in self.enums}

    def op(self, name: str) -> Op | None:
        return self._ops.get(name)

    def enum(self, name: str) -> Enum | None:
        return self._enums.get(name)

    def feature(self, identifier: str | None) -> Feature | None:
        return next((feature for feature in self.features if feature.id == identifier), None)

    def default(self, identifier: str) -> Default | None:
        return next((default for default in self.defaults if default.id == identifier), None)

    def features_of(self, name: str) -> tuple[Feature, ...]:
        """``name`` is an op without its version, or a type, attribute or enum with it."""
        return tuple(feature for feature in self.features if name in feature.ops or name in feature.names)

    def before(self, version: Version) -> Version | None:
        return max((entry.version for entry in self.versions if entry.version < version), default=None)

    def after(self, version: Version) -> Version | None:
        return min((entry.version for entry in self.versions if entry.version > version), default=None)

    def steps(self) -> Iterator[tuple[Op, OpStep, OpVersion, OpVersion]]:
        """Yield every step both of whose versions exist, with its op, the older and the newer version."""
        for op in self.ops:
            by_number = {version.number: version for version in op.versions}
            for step in op.steps:
                if step.older in by_number and step.newer in by_number:
                    yield op, step, by_number[step.older], by_number[step.newer]

    def constraints(self) -> Iterator[tuple[str, Op, Constraint]]:
        """Yield a name (op and feature), the op and the constraint."""
        for op in self.ops:
            seen: dict[str, int] = {}
            for constraint in op.constraints:
                seen[constraint.feature] = seen.get(constraint.feature, 0) + 1
                nth = f".{seen[constraint.feature]}" if seen[constraint.feature] > 1 else ""
                yield f"{op.name}.{constraint.feature}{nth}", op, constraint

    def entries(self) -> Iterator[SpecificationEntry]:
        for version in self.op_versions.values():
            yield SpecificationEntry("op", version.name, version.min, version.max)
        for kind, spellings in (("type", self.types), ("attribute", self.attributes)):
            for spelling in spellings:
                yield SpecificationEntry(kind, spelling.name, spelling.min or self.versions[0].version, spelling.max)
        for enum in self.enums:
            yield SpecificationEntry("enum", enum.name, enum.min, enum.max)
        for enum in self.enums:
            for case in enum.cases:
                yield SpecificationEntry("case", f"{enum.name}.{case.name}", case.min, enum.max)
        for name, op, constraint in self.constraints():
            refused = [version.min for version in op.versions if version.number in constraint.versions]
            yield SpecificationEntry(
                "constraint", name, min(refused, default=constraint.since), self.before(constraint.since)
            )
        for op, step, _, newer in self.steps():
            yield SpecificationEntry("step", f"{op.name}.{step.older}-{step.newer}", newer.min, None)
        for feature in self.features:
            kind = "encoding" if feature.kind in ENCODING_KINDS else "feature"
            yield SpecificationEntry(kind, feature.id, feature.introduced, None)
        for default in self.defaults:
            used = [newer.min for _, step, _, newer in self.steps() if default.id in defaults_of(step)]
            yield SpecificationEntry("default", default.id, min(used, default=self.versions[0].version), None)
        for each in self.versions:
            yield SpecificationEntry("version", str(each.version), each.version, each.version)


def defaults_of(step: OpStep) -> set[str]:
    return {*step.added.values(), *step.removed.values()}


def load_specification(folder: Path | Traversable | None = None) -> Specification:
    """Load the specification in ``folder``, of which any file may be missing; by default, ours.

    Without ``versions.toml`` the versions are the known versions of StableHLO.
    """
    specs = folder or dialect_specs()
    if not any(specs.joinpath(*file.split("/")).is_file() for file in _FILES) and not files_in("vhlo/ops", specs):
        raise InvalidSpecificationError(
            f"{specs} contains no specification: expected a folder with versions.toml, vhlo/ops/*.toml or other files "
            f"of dialect_specs/"
        )
    return Specification(
        specs,
        load_versions(specs) or load_versions(),
        load_ops(specs),
        load_spellings("vhlo", "type", specs),
        load_spellings("vhlo", "attribute", specs),
        load_spellings("builtin", "type", specs),
        load_spellings("builtin", "attribute", specs),
        load_enums(specs),
        load_features(specs),
        load_defaults(specs),
    )


# Not slotted, as the base.
class _KnownSpecification(Specification):
    """Our specification: each of its parts is made when it is first asked for."""

    _PARTS: ClassVar[Mapping[str, Callable[[], Any]]] = {
        "folder": dialect_specs,
        "versions": known_versions,
        "ops": known_ops,
        "types": partial(spellings_of, "vhlo", "type"),
        "attributes": partial(spellings_of, "vhlo", "attribute"),
        "builtin_types": partial(spellings_of, "builtin", "type"),
        "builtin_attributes": partial(spellings_of, "builtin", "attribute"),
        "enums": known_enums,
        "features": known_features,
        "defaults": known_defaults,
    }

    def __new__(cls, **parts: Any) -> Specification:  # type: ignore[misc]
        # With other parts, as `dataclasses.replace` makes it, it is one like any other.
        return Specification(**parts) if parts else super().__new__(cls)

    def __init__(self) -> None:
        """Make nothing yet: each part is made when it is first asked for."""

    def __getattr__(self, name: str) -> Any:
        if name not in self._PARTS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        part = vars(self)[name] = self._PARTS[name]()
        return part

    @cached_property
    def op_versions(self) -> Mapping[str, OpVersion]:
        return KnownOpVersions()

    def op(self, name: str) -> Op | None:
        return find_op(name)

    def enum(self, name: str) -> Enum | None:
        return find_enum(name)


@cache
def known_specification() -> Specification:
    return _KnownSpecification()


def structures_in(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every attribute and type in a structure as in ``defaults.toml``, outer before inner.

    A shared one is yielded once: those of a file, written out, may be exponentially many.
    """
    pending, seen = [value], set[int]()
    while pending:
        each = pending.pop()
        if isinstance(each, Mapping):
            if id(each) not in seen:
                seen.add(id(each))
                yield each
                pending += reversed(list(each.values()))
        elif isinstance(each, Sequence) and not isinstance(each, str) and id(each) not in seen:
            seen.add(id(each))
            pending += reversed(each)
