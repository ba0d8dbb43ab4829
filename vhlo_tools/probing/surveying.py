"""Survey of the installed library: every question is asked in a child process, which may crash or hang."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from vhlo_tools.bindings import isolation
from vhlo_tools.dialect import Specification, Survey, Unread
from vhlo_tools.errors import EngineError
from vhlo_tools.version import Version

_QUESTIONS: Final = "vhlo_tools.probing.questions"
#: How many versions of an op are looked for beyond those that are known.
_FURTHER: Final = 9


def survey_library(specs: Specification, provider: str | None = None) -> Survey:
    """Survey ops, types, attributes and enum cases of an installed library, with their versions.

    Names come from its binary and from ``specs``, for names that the binary does not hold in one piece. Parts that
    crash it, or have parameters of an unknown form, are in :attr:`Survey.unread`. Of steps only the values that an
    upgrade sets are asked, and constraints are not.
    """
    return _Surveyor(specs, provider).survey()


class _Surveyor:
    def __init__(self, specs: Specification, provider: str | None) -> None:
        self._specs = specs
        self._provider = provider
        self._unread: list[Unread] = []
        self._found: dict[str, dict[str, Any]] = {}
        self._implied: dict[str, Mapping[str, str]] = {}
        self._name = "the installed library"

    def survey(self) -> Survey:
        library = _ask("ask_library", self._provider)
        self._name = library["name"]
        current, minimum = Version(library["current"]).minor_release, Version(library["minimum"])
        versions = [str(each) for each in self._versions(minimum, current)]
        candidates = {*library["names"], *self._known_names()}
        ops = _ask("registered_ops", self._provider, sorted(candidates))
        entries: dict[str, dict[str, dict[str, Any]]] = {
            "version": self._bytecode(versions),
            "op": self._ops(ops, versions),
            "step": self._steps(ops),
            **{kind: {} for kind in ("type", "attribute", "enum", "case")},
        }
        encodings: dict[str, tuple[tuple[int, tuple[str, ...]], ...]] = {}
        known = {each.name for each in (*self._specs.types, *self._specs.attributes)}
        # An op may have the name of a type, as tuple_v1 has, or of an attribute.
        for name in sorted({*library["names"], *known}):
            answer = self._answer(name, "ask_name", name, versions)
            if answer == {} and name in library["names"] and name not in ops:
                self._miss(f"what {name} is", "an op, a type, an attribute or an enum of this name")
            self._add(name, answer or {}, entries, encodings)
        return Survey(
            self._name,
            current,
            minimum,
            entries,
            encodings=encodings,
            implied=self._implied,
            unread=tuple(self._unread),
        )

    def _versions(self, minimum: Version, current: Version) -> list[Version]:
        known = [each.version for each in self._specs.versions if minimum <= each.version <= current]
        newest = self._specs.newest
        further = (
            [Version(f"{current.major}.{minor}.0") for minor in range(newest.minor + 1, current.minor + 1)]
            if newest.major == current.major
            else [current]
        )
        return known + (further if current > newest else [])

    def _known_names(self) -> set[str]:
        names = {f"{op.name}_v{number}" for op in self._specs.ops for number in range(1, _FURTHER + 1)}
        return names | self._specs.op_versions.keys()

    def _bytecode(self, versions: Sequence[str]) -> dict[str, dict[str, Any]]:
        answer = self._answer("the versions of MLIR bytecode", "bytecode_of", versions)
        return {version: {"bytecode": number} for version, number in (answer or {}).items()}

    def _ops(self, names: Sequence[str], versions: Sequence[str]) -> dict[str, dict[str, Any]]:
        numbers: dict[str, list[int]] = {}
        for name in names:
            op, _, number = name.rpartition("_v")
            numbers.setdefault(op, []).append(int(number))
        found = self._found
        for op, each in sorted(numbers.items()):
            answer = self._answer(op, "ask_op", op, each, versions)
            for name in (f"{op}_v{number}" for number in each):
                facts = (answer or {}).get(name, {})
                found[name] = {key: value for key, value in facts.items() if key != "implied"}
                self._implied[name] = facts.get("implied", {})
                if answer is not None and not {"min", "attributes"} <= facts.keys():
                    self._miss(f"all of {name}", f"{name} in a form that the library accepts")
        return found

    def _steps(self, ops: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return the values for attributes that the next version of an op adds, for each two that follow each other."""
        found: dict[str, dict[str, Any]] = {}
        for name in ops:
            op, _, number = name.rpartition("_v")
            older, newer = self._found.get(name, {}), self._found.get(f"{op}_v{int(number) + 1}", {})
            if "attributes" in older and {"attributes", "min"} <= newer.keys():
                implied = self._implied[f"{op}_v{int(number) + 1}"]
                sets = {each: implied.get(each) for each in newer["attributes"] if each not in older["attributes"]}
                found[f"{op}.{number}-{int(number) + 1}"] = {"min": newer["min"], "sets": sets}
        return found

    def _add(
        self,
        name: str,
        answer: Mapping[str, Mapping[str, Any]],
        entries: dict[str, dict[str, dict[str, Any]]],
        encodings: dict[str, tuple[tuple[int, tuple[str, ...]], ...]],
    ) -> None:
        for kind in ("type", "attribute"):
            if (facts := answer.get(kind)) is not None:
                entries[kind][name] = {key: facts[key] for key in ("min", "max", "code") if key in facts}
                if "code" not in facts:
                    self._miss(f"the life and the code of the {kind} {name}", f"the form of its parameters in {name}")
                    continue
                encodings[name] = ((facts["code"], ()),)
                if facts["bare"]:
                    entries[kind][name]["encodings"] = [str(facts["code"])]
        if cases := answer.get("enum"):
            mins = [Version(case["min"]) for case in cases.values() if "min" in case]
            life = {"min": str(min(mins)), "max": next(iter(cases.values())).get("max")} if mins else {}
            codes = [case["code"] for case in cases.values() if "code" in case]
            entries["enum"][name] = dict(life)
            entries["attribute"][name] = {**life, **({"code": codes[0]} if codes else {})}
            if codes:
                encodings[name] = ((codes[0], (f"value: enum {name}",)),)
                entries["attribute"][name]["encodings"] = [f"{codes[0]}: enum {name}"]
            for case, each in cases.items():
                entries["case"][f"{name}.{case}"] = {key: each[key] for key in ("value", "min") if key in each}

    def _answer(self, about: str, question: str, *arguments: object) -> Any:
        """Return ``None`` if the library crashed or did not end."""
        try:
            return _ask(question, self._provider, *arguments)
        except EngineError as error:
            first = str(error).splitlines()[0]
            self._miss(about, f"an answer ({first[:120]})")
            return None

    def _miss(self, unknown: str, expected: str) -> None:
        self._unread.append(Unread(self._name, expected, unknown))


def _ask(question: str, *arguments: object) -> Any:
    if isolation.AVAILABLE:
        return isolation.call(f"{_QUESTIONS}:{question}", *arguments)
    return getattr(import_module(_QUESTIONS), question)(*arguments)
