"""Ops of VHLO with all their versions, the defaults of steps, and the layout of properties."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from vhlo_tools.records import dataclass
from vhlo_tools.spec.data import NUMBERED, check_entry, convert_entry, files_in, load_entries, read_entries
from vhlo_tools.version import Version

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from vhlo_tools.spec.data import Kind

# Default values that steps between op versions set and compare with, from ``dialect_specs/vhlo/defaults.toml``

#: An attribute or a type as plain data, without MLIR: ``{"attribute": "type_v1", "type": {"type": "none_v1"}}``.
Structure = Mapping[str, Any]
#: Which values equal a default; the head of ``defaults.toml`` defines each.
Equality = Literal["same", "no_elements", "zero"]
#: How a default is computed from an op; the head of ``defaults.toml`` defines each.
Computation = Literal["no_padding"]


@dataclass(frozen=True, slots=True)
class Default:
    """A value that an upgrade sets and a downgrade compares with, or the other way round."""

    id: str
    text: str | None = None  # as VHLO text prints it; None if it is computed
    value: Structure | None = field(default=None, hash=False)  # for writers of bytes; None if it is computed
    equals: Equality = "same"  # the values that a downgrade accepts as equal
    computed: Computation | None = None  # how it is computed from the op; None if it is constant
    of: str | None = None  # the operand from which it is computed


def load_defaults(specs: Traversable | None = None) -> tuple[Default, ...]:
    return load_entries("vhlo/defaults.toml", "default", _to_default, specs)


@cache
def known_defaults() -> tuple[Default, ...]:
    return load_defaults()


@cache
def known_default(identifier: str) -> Default:
    return next(default for default in known_defaults() if default.id == identifier)


def _to_default(entry: dict[str, Any]) -> Default:
    equality, computation = frozenset(get_args(Equality)), frozenset(get_args(Computation))
    check_entry(entry, id=str, text=str, value=dict, equals=equality, computed=computation, of=str)
    given = entry.keys() - {"id", "equals"}
    if given != ({"computed", "of"} if "computed" in entry else {"text", "value"}):
        raise ValueError("expected text and value, or computed and of")
    default = Default(**entry)
    if default.value is not None and "attribute" not in default.value:
        raise ValueError("value is not an attribute: expected { attribute = ... }")
    return default


# Ops of VHLO with all their versions, from ``dialect_specs/vhlo/ops/``, whose README defines every key

Predicate = Literal["same_element_types", "attributes_are_not", "operands_are_not", "operands_do_not_mix"]


@dataclass(frozen=True, slots=True)
class Slot:
    """An operand, a result or a region of an op."""

    name: str
    variadic: bool = False

    @classmethod
    def parse(cls, text: str) -> Slot:
        return cls(text.removesuffix("*"), text.endswith("*"))

    def __str__(self) -> str:
        return f"{self.name}*" if self.variadic else self.name


@dataclass(frozen=True, slots=True)
class OpVersion:
    op: str  # without dialect and version: ``exponential``
    number: int  # from 1
    min: Version
    max: Version | None  # None while it is current
    operands: tuple[Slot, ...]
    results: tuple[Slot, ...]
    attributes: tuple[str, ...]  # inherent, all always present, in the order of a properties entry in the bytecode
    regions: tuple[Slot, ...] = ()
    forgotten: bool = False  # the library no longer knows it, although artifacts contain it

    @property
    def name(self) -> str:
        """Its name in bytecode, where the dialect is stored separately: ``exponential_v2``."""
        return f"{self.op}_v{self.number}"

    def is_in(self, version: Version) -> bool:
        return self.min <= version.minor_release and (self.max is None or version.minor_release <= self.max)

    def operand_slices(self, count: int) -> dict[str, slice]:
        """Several variadic operands of one op have equal numbers of values: VHLO stores no segment sizes."""
        variadic = sum(slot.variadic for slot in self.operands)
        rest = count - (len(self.operands) - variadic)
        if rest < 0 or (rest % variadic if variadic else rest):
            raise ValueError(f"{self.name} cannot have {count} operands")
        slices, start = {}, 0
        for slot in self.operands:
            stop = start + (rest // variadic if slot.variadic else 1)
            slices[slot.name] = slice(start, stop)
            start = stop
        return slices


@dataclass(frozen=True, slots=True)
class OpStep:
    """The change between two neighbouring versions of an op, in both directions."""

    older: int
    newer: int
    feature: str | None = None  # named by a refused downgrade; None if none can be refused
    #: Attributes of the newer version only, with the id of the default that an upgrade sets and a downgrade requires.
    added: Mapping[str, str] = field(default_factory=dict, hash=False)
    #: attributes of the older version, with the defaults that a downgrade sets
    removed: Mapping[str, str] = field(default_factory=dict, hash=False)
    single: tuple[str, ...] = ()  # variadics that must have exactly one value in a downgrade
    empty: tuple[str, ...] = ()  # variadic regions that must be empty in a downgrade


@dataclass(frozen=True, slots=True)
class Constraint:
    """A form of an op that is refused below a version, although that version has the op."""

    feature: str
    since: Version  # the first version that allows the form
    versions: tuple[int, ...]  # the numbers of the op versions to which it applies
    requires: Predicate  # must hold below ``since``; the fields below are what it concerns
    operands: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    kind: str | None = None
    value: Structure | None = field(default=None, hash=False)
    types: tuple[str, ...] = ()  # element types
    readers_accept_until: Version | None = None  # the last version whose readers accept it nevertheless


@dataclass(frozen=True, slots=True)
class Op:
    name: str
    family: str  # the stem of the name of its file
    versions: tuple[OpVersion, ...]
    steps: tuple[OpStep, ...] = ()
    constraints: tuple[Constraint, ...] = ()

    def at(self, version: Version) -> OpVersion | None:
        return next((candidate for candidate in self.versions if candidate.is_in(version)), None)


def load_ops(specs: Traversable | None = None) -> tuple[Op, ...]:
    return _sorted(_convert(file, entry) for file, entry in _read_ops(specs))


@cache
def known_ops() -> tuple[Op, ...]:
    return _sorted(map(_known_op, range(len(_known_entries()))))


def find_op(name: str) -> Op | None:
    number = _known_numbers().get(name)
    return None if number is None else _known_op(number)


def find_op_version(name: str) -> OpVersion | None:
    found = _found.get(name)
    if found is None and (op := find_op(name.rpartition("_v")[0])) is not None:
        _found.update({version.name: version for version in op.versions})
        found = _found.get(name)
    return found


class KnownOpVersions(Mapping[str, OpVersion]):
    """Every known op version, by its name in bytecode; each is made when it is first looked up."""

    def __getitem__(self, name: str) -> OpVersion:
        found = find_op_version(name)
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return (version.name for op in known_ops() for version in op.versions)

    def __len__(self) -> int:
        return sum(len(op.versions) for op in known_ops())


# A program has few of the ops: those that nobody asks for remain entries of their files.
_found: dict[str, OpVersion] = {}


@cache
def _known_entries() -> tuple[tuple[str, dict[str, Any]], ...]:
    return tuple(_read_ops())


@cache
def _known_numbers() -> dict[str, int]:
    return {str(entry.get("name")): number for number, (_, entry) in enumerate(_known_entries())}


@cache
def _known_op(number: int) -> Op:
    return _convert(*_known_entries()[number])


def _read_ops(specs: Traversable | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    for file in files_in("vhlo/ops", specs):
        yield from ((file, entry) for entry in read_entries(file, "op", specs))


def _sorted(ops: Iterable[Op]) -> tuple[Op, ...]:
    return tuple(sorted(ops, key=lambda op: op.name))


def _convert(file: str, entry: dict[str, Any]) -> Op:
    family = file.rpartition("/")[2].removesuffix(".toml")
    return convert_entry(file, "op", entry, partial(_to_op, family=family))


def _to_op(entry: dict[str, Any], family: str) -> Op:
    check_entry(entry, name=str, version=[dict], step=[dict], constraint=[dict])
    if not entry["version"]:
        raise ValueError("it has no version")
    return Op(
        entry["name"],
        family,
        tuple(_to_version(entry["name"], version) for version in entry["version"]),
        tuple(map(_to_step, entry.get("step", ()))),
        tuple(map(_to_constraint, entry.get("constraint", ()))),
    )


def _to_version(op: str, entry: dict[str, Any]) -> OpVersion:
    names: dict[str, Kind] = {key: [str] for key in ("operands", "results", "attributes", "regions")}
    check_entry(entry, number=NUMBERED, min=str, max=str, forgotten=bool, **names)
    return OpVersion(
        op,
        entry["number"],
        Version(entry["min"]),
        Version(entry["max"]) if "max" in entry else None,
        tuple(map(Slot.parse, entry["operands"])),
        tuple(map(Slot.parse, entry["results"])),
        tuple(entry["attributes"]),
        tuple(map(Slot.parse, entry.get("regions", ()))),
        entry.get("forgotten", False),
    )


def _to_step(entry: dict[str, Any]) -> OpStep:
    defaults: Kind = {"": str}
    check_entry(entry, between=[NUMBERED], feature=str, added=defaults, removed=defaults, single=[str], empty=[str])
    older, newer = entry["between"]
    return OpStep(
        older,
        newer,
        entry.get("feature"),
        entry.get("added", {}),
        entry.get("removed", {}),
        tuple(entry.get("single", ())),
        tuple(entry.get("empty", ())),
    )


# The keys of each predicate, exactly, in each of its forms.
_ABOUT: Mapping[str, tuple[frozenset[str], ...]] = {
    "same_element_types": (frozenset(),),
    "attributes_are_not": (frozenset({"attributes", "kind"}), frozenset({"attributes", "value"})),
    "operands_are_not": (frozenset({"operands", "kind"}),),
    "operands_do_not_mix": (frozenset({"operands", "types"}),),
}


def _to_constraint(entry: dict[str, Any]) -> Constraint:
    names: dict[str, Kind] = {key: [str] for key in ("operands", "attributes", "types")}
    check_entry(
        entry,
        feature=str,
        since=str,
        versions=[NUMBERED],
        requires=frozenset(get_args(Predicate)),
        kind=str,
        value=dict,
        readers_accept_until=str,
        **names,
    )
    about = entry.keys() & frozenset().union(*(keys for forms in _ABOUT.values() for keys in forms))
    forms = _ABOUT[entry["requires"]]
    if about not in forms:
        expected = " or ".join(" and ".join(sorted(form)) or "nothing else" for form in forms)
        raise ValueError(f"{entry['requires']} has {' and '.join(sorted(about)) or 'nothing'}: expected {expected}")
    return Constraint(
        entry["feature"],
        Version(entry["since"]),
        tuple(entry["versions"]),
        entry["requires"],
        tuple(entry.get("operands", ())),
        tuple(entry.get("attributes", ())),
        entry.get("kind"),
        entry.get("value"),
        tuple(entry.get("types", ())),
        Version(entry["readers_accept_until"]) if "readers_accept_until" in entry else None,
    )


# Inherent attributes in the properties of ops, from ``dialect_specs/properties.toml`` and the ops of VHLO


class PropertySlot(NamedTuple):
    name: str
    optional: bool


def property_slots(op: str) -> tuple[PropertySlot, ...] | None:
    """Return the slots of ``op``, a name with its dialect, in order; ``None`` if the op is unknown."""
    dialect, _, short = op.partition(".")
    if dialect != "vhlo":
        return _others().get(op)
    version = find_op_version(short)
    return tuple(PropertySlot(name, False) for name in version.attributes) if version else None


@cache
def _others() -> dict[str, tuple[PropertySlot, ...]]:
    return dict(load_entries("properties.toml", "op", _to_property_slots))


def _to_property_slots(entry: dict[str, Any]) -> tuple[str, tuple[PropertySlot, ...]]:
    check_entry(entry, name=str, attributes=[str])
    return entry["name"], tuple(
        PropertySlot(each.removesuffix("?"), each.endswith("?")) for each in entry["attributes"]
    )
