"""Features, which name what versions introduced, from ``dialect_specs/vhlo/features.toml``."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from vhlo_tools.findings import FindingKind
from vhlo_tools.records import dataclass
from vhlo_tools.spec.data import check_entry, load_entries
from vhlo_tools.version import Version

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

#: What an expansion does to the values that a program computes: nothing, or what it names.
Effect = Literal["exact", "relaxed"]
_EFFECTS: Final = frozenset(get_args(Effect))


@dataclass(frozen=True, slots=True)
class Expansion:
    """A rewrite of a feature into older features, which ``vhlo_tools.conversion.expansion`` does.

    Attributes:
        effect: ``exact`` if the program computes the same afterwards, within the bound that the patterns state;
            ``relaxed`` if something is given up.
        to: The oldest version whose consumers have everything that it leaves.
        leaves: The ops of StableHLO that it leaves; empty if it only removes something from an op.
        patterns: The name of the module of ``vhlo_tools.conversion.expansion`` with its patterns, and after a dot their
            name in it if it has several.
        always: Whether it applies to every valid use of the feature.
        limits: To what it does not apply, in words, if there is anything.
        gives_up: What is given up, in words, by a relaxed expansion.
        signature: Whether it applies to arguments and results of public functions if their types may change.
    """

    effect: Effect
    to: Version
    leaves: tuple[str, ...]
    patterns: str
    always: bool = False
    limits: str | None = None
    gives_up: str | None = None
    signature: bool = False


@dataclass(frozen=True, slots=True)
class Feature:
    """The unit of compatibility.

    Attributes:
        id: A stable name.
        title: A short description.
        kind: Its kind.
        introduced: The version that introduced it.
        remedy: What to do when a consumer is older.
        ops: The VHLO ops, without their version suffix, on which it occurs; empty if it is not bound to ops.
        expansions: Its rewrites into older features: at most one exact and one relaxed one, in this order.
        names: The VHLO types, attributes and enums, with their version suffix, of which it consists.
        read_since: The first patch release of an older version whose readers accept it, if they were found to.
        inexpressible: Why no older feature can express it, in words, if it has no expansion for that reason.
        unasked: What is written in its place for older targets without being asked, in words, if that is done.
    """

    id: str
    title: str
    kind: FindingKind
    introduced: Version
    remedy: str
    ops: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    expansions: tuple[Expansion, ...] = ()
    read_since: Version | None = None
    inexpressible: str | None = None
    unasked: str | None = None

    def expansion(self, effect: Effect) -> Expansion | None:
        """Return its expansion of an effect, if it has one."""
        return next((each for each in self.expansions if each.effect == effect), None)


def load_features(specs: Traversable | None = None) -> tuple[Feature, ...]:
    return load_entries("vhlo/features.toml", "feature", _to_feature, specs)


@cache
def known_features() -> tuple[Feature, ...]:
    return load_features()


@cache
def known_feature(identifier: str) -> Feature:
    return next(feature for feature in known_features() if feature.id == identifier)


@cache
def known_verifiers() -> tuple[Feature, ...]:
    """What verifiers came to accept: ``names`` are types of elements of operands and results of ``ops``."""
    return load_entries("vhlo/verifiers.toml", "verifier", _to_feature)


def _to_feature(entry: dict[str, Any]) -> Feature:
    kinds = frozenset(get_args(FindingKind))
    texts = dict.fromkeys(("id", "title", "introduced", "remedy", "read_since", "inexpressible", "unasked"), str)
    check_entry(entry, kind=kinds, ops=[str], names=[str], expansion=[dict], **texts)
    plain = {key: value for key, value in entry.items() if key != "expansion"}
    return Feature(
        **{
            **plain,
            "expansions": tuple(map(_to_expansion, entry.get("expansion", ()))),
            "introduced": Version(entry["introduced"]),
            "read_since": Version(entry["read_since"]) if "read_since" in entry else None,
            "ops": tuple(entry.get("ops", ())),
            "names": tuple(entry.get("names", ())),
        }
    )


def _to_expansion(entry: dict[str, Any]) -> Expansion:
    texts = dict.fromkeys(("to", "patterns", "limits", "gives_up"), str)
    check_entry(entry, effect=_EFFECTS, leaves=[str], always=bool, signature=bool, **texts)
    return Expansion(**{**entry, "to": Version(entry["to"]), "leaves": tuple(entry["leaves"])})
