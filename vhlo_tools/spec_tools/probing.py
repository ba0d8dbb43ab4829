"""``vhlo spec probe``: determine the VHLO of the installed library by questions to it."""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from vhlo_tools.bindings import MLIRFailure, Provider, get_provider, isolation
from vhlo_tools.bytecode import ByteReader, decode
from vhlo_tools.errors import EngineError, MalformedArtifactError
from vhlo_tools.files import view
from vhlo_tools.records import dataclass
from vhlo_tools.spec import Specification
from vhlo_tools.spec_tools.survey import Survey, Unread
from vhlo_tools.version import Version

# VHLO mnemonics found in the shared library: ops, types and attributes among other names

_NAME: Final = re.compile(rb"\bvhlo\.([A-Za-z][A-Za-z0-9_-]*_v[1-9][0-9]*)")


def names_in(folder: Path) -> frozenset[str]:
    """Return every name with a version behind ``vhlo.``."""
    names: set[str] = set()
    for file in sorted(folder.rglob("*.so*")):
        if file.stat().st_size:
            with file.open("rb") as binary, mmap.mmap(binary.fileno(), 0, access=mmap.ACCESS_READ) as data:
                names.update(match[1].decode("ascii") for match in _NAME.finditer(data))
    return frozenset(names)


# Questions to the library, each answered in a child process: a parser that asserts ends only the child
#
# Every answer is plain data. An op is asked by text that is corrected after the complaints of the library until it
# parses; its lifetime, by conversions to each version.

# Of four dimensions, so that the padding of a convolution has two spatial ones.
_TENSOR: Final = "!vhlo.tensor_v1<1x2x3x4x!vhlo.f32_v1>"
_REGION: Final = f'{{\n^bb0(%a: {_TENSOR}):\n  "vhlo.return_v1"(%a) : ({_TENSOR}) -> ()\n}}'

#: Attributes of which the library takes the kind for granted; to any other it is all one.
_VALUES: Final[Mapping[str, str]] = {
    "api_version": "#vhlo<api_version_v1 API_VERSION_ORIGINAL>",
    "function_type": "#vhlo.type_v1<!vhlo.func_v1<(()) -> ()>>",
}

_F32: Final = "!vhlo.f32_v1"
_TEXT: Final = '#vhlo.string_v1<"x">'
#: The parameters with which a type, or an attribute, is tried.
_PARAMETERS: Final[Mapping[str, Sequence[str]]] = {
    "type": (
        "",
        f"<{_F32}>",
        f"<2x{_F32}>",
        f"<({_F32}) -> {_F32}>",
        f"<!vhlo.i8_v1:{_F32}, 0.1:-3, -128:127, 1>",
        f"<!vhlo.i8_v1:{_F32}, 1, [0.5, 0.25], [0, -3], -128:127, 1>",
    ),
    "attribute": (
        "",
        "<true>",
        "<[]>",
        "<{}>",
        '<"">',
        "<1.0 : !vhlo.f64_v1>",
        "<5 : i64>",
        "<dense<0> : tensor<1xi64>>",
        f"<{_F32}>",
        "<bounds = [3]>",
        "<outputTupleIndices = [1], operandIndex = 2, operandTupleIndices = []>",
        "<pre_size = 1, size = 2>",
        f"<name = {_TEXT}, size = 2>",
        f"<name = {_TEXT}>",
        f"<mesh = {_TEXT}, axes = {_TEXT}>",
        f"<axes = {_TEXT}>",
        "<atol = 0.0, rtol = 0.0, ulps = 0, mode = #vhlo<result_accuracy_mode_v1 DEFAULT>>",
    ),
}

_ATTEMPTS: Final = 200


@cache
def _library(prefix: str | None) -> tuple[Provider, Any]:
    provider = get_provider(prefix)
    return provider, provider.new_context()


def ask_library(prefix: str | None) -> dict[str, Any]:
    provider, _ = _library(prefix)
    library = provider.library
    folder = Path(provider.module("ir").__file__).parents[1]
    return {
        "name": library.name,
        "current": str(library.current),
        "minimum": str(library.minimum),
        "names": sorted(names_in(folder)),
    }


def registered_ops(prefix: str | None, names: Sequence[str]) -> list[str]:
    _, context = _library(prefix)
    return [name for name in names if context.is_registered_operation(f"vhlo.{name}")]


def bytecode_of(prefix: str | None, versions: Sequence[str]) -> dict[str, int]:
    provider, _ = _library(prefix)
    # Behind the four bytes by which a file is known.
    return {each: provider.stablehlo.serialize_portable_artifact_str(b"module {}", each)[4] >> 1 for each in versions}


# Ops


@dataclass(slots=True)
class _OpText:
    name: str
    operands: int = 0
    results: int = 0
    regions: int = 0
    attributes: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        attributes = ", ".join(f"{name} = {value}" for name, value in self.attributes.items())
        properties = f" <{{{attributes}}}>" if attributes else ""
        regions = f" ({', '.join([_REGION] * self.regions)})" if self.regions else ""
        results = f"%r:{self.results} = " if self.results else ""
        operands = ", ".join(["%v"] * self.operands)
        signature = f"({', '.join([_TENSOR] * self.operands)}) -> ({', '.join([_TENSOR] * self.results)})"
        value = f'%v = "vhlo.constant_v1"() <{{value = {_TEXT}}}> : () -> {_TENSOR}\n'
        return f'{value}{results}"vhlo.{self.name}"({operands}){properties}{regions} : {signature}'


def ask_op(prefix: str | None, op: str, numbers: Sequence[int], versions: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the facts about the versions ``numbers`` of an op, by name; a key is left out without an answer.

    Each has its attributes, the numbers of its operands, results and regions, its first and last version among
    ``versions``, and in ``implied`` the values of attributes that the oldest of ``numbers`` has not.
    """
    provider, context = _library(prefix)
    facts: dict[str, dict[str, Any]] = {}
    first: _OpText | None = None
    for number in sorted(numbers):
        name = f"{op}_v{number}"
        text = _accepted(provider, context, name)
        facts[name] = {}
        if text is not None:
            facts[name] = {"attributes": sorted(text.attributes), **_numbers(provider, context, text)}
            first = first or text
    if first is not None:
        for name, life in _lives(provider, context, first, versions).items():
            facts.setdefault(name, {}).update(life)
            facts[name]["implied"] = _implied(provider, context, first, str(life["min"]))
    return facts


# Complaints of MLIR about an op in the generic form.
_LACKS: Final = re.compile(r"requires attribute '(\w+)'")
_COUNTS: Final = re.compile(
    r"(?:requires|expected) (?:exactly )?(zero|one|a single|\d+)(?: or more)? (operand|result|region)s?"
)
_WORDS: Final = {"zero": 0, "one": 1, "a single": 1}


def _accepted(provider: Provider, context: Any, name: str) -> _OpText | None:
    """Return the shortest text of an op that the library accepts."""
    text = _OpText(name)
    for _ in range(_ATTEMPTS):
        said = _refusal(provider, context, str(text))
        if said is None:
            return text
        if lacks := _LACKS.search(said):
            if lacks[1] in text.attributes:
                return None
            text.attributes[lacks[1]] = _VALUES.get(lacks[1], f'#vhlo.string_v1<"{lacks[1]}">')
        elif counts := _COUNTS.search(said):
            number = _WORDS.get(counts[1], -1) if counts[1] in _WORDS else int(counts[1])
            if getattr(text, f"{counts[2]}s") == number:
                return None
            setattr(text, f"{counts[2]}s", number)
        else:
            return None
    return None


def _refusal(provider: Provider, context: Any, text: str) -> str | None:
    try:
        provider.parse(context, text)
    except MLIRFailure as failure:
        return str(failure)
    return None


def _numbers(provider: Provider, context: Any, text: _OpText) -> dict[str, str]:
    """Count operands, results and regions: a number, or the least one and ``or more``."""
    found = {}
    for what in ("operands", "results", "regions"):
        fewest = getattr(text, what)
        setattr(text, what, fewest + 1)
        is_variadic = _refusal(provider, context, str(text)) is None
        setattr(text, what, fewest)
        found[f"number of {what}"] = f"{fewest} or more" if is_variadic else str(fewest)
        if is_variadic and not fewest and what != "regions":
            # A step to a version with exactly one value takes one.
            setattr(text, what, 1)
    return found


def _lives(
    provider: Provider, context: Any, text: _OpText, versions: Sequence[str]
) -> dict[str, dict[str, str | None]]:
    """Return the first and the last version of each version of an op, from the one that its oldest version becomes."""
    names: dict[str, list[str]] = {}
    for version in versions:
        if (found := _converted(provider, context, str(text), version)) is not None:
            names.setdefault(found, []).append(version)
    return {
        name: {"min": there[0], "max": None if there[-1] == versions[-1] else there[-1]}
        for name, there in names.items()
    }


def _implied(provider: Provider, context: Any, text: _OpText, version: str) -> dict[str, str]:
    """Return the attributes that an op gets on its way to ``version``, as text."""
    module = provider.parse(context, str(text))
    provider.run_passes(module, f"vhlo-to-version{{target={version}}}", verify=True)
    attributes = list(module.body.operations)[-1].operation.attributes
    named = ((str(attributes[index].name), str(attributes[index].attr)) for index in range(len(attributes)))
    return {name: value for name, value in named if name not in text.attributes}


def _converted(provider: Provider, context: Any, text: str, version: str) -> str | None:
    """Return the name of the last op of ``text`` in ``version``; ``None`` if it cannot be there."""
    module = provider.parse(context, text)
    try:
        provider.run_passes(module, f"vhlo-to-version{{target={version}}}", verify=True)
    except MLIRFailure:
        return None
    last = list(module.body.operations)[-1]
    return str(last.operation.name).removeprefix("vhlo.")


# Types, attributes and enums


def ask_name(prefix: str | None, name: str, versions: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the facts about a name that is no op, by its kind: ``type``, ``attribute`` or ``enum``.

    An enum has its cases by name. A type, an attribute or a case has ``bare`` if it takes no parameters, and, if a
    value of it was found, its first and last version, its code, and the number behind that; otherwise it is empty.
    """
    provider, context = _library(prefix)
    cases = _cases(provider, context, name)
    if cases:
        return {"enum": {case: _of_value(prefix, f"#vhlo<{name} {case}>", versions) for case in cases}}
    found: dict[str, dict[str, Any]] = {}
    for kind, sign in (("type", "!"), ("attribute", "#")):
        said = _refusal_of_value(provider, context, kind, f"{sign}vhlo.{name}")
        if said is not None and all(line.startswith(f"unknown vhlo {kind}") for line in said.splitlines()):
            continue
        found[kind] = {}
        for parameters in _PARAMETERS[kind]:
            text = f"{sign}vhlo.{name}{parameters}"
            if _refusal_of_value(provider, context, kind, text) is None:
                value = f"#vhlo.type_v1<{text}>" if kind == "type" else text
                of_value = _of_value(prefix, value, versions, is_type=kind == "type")
                found[kind] = {"bare": not parameters, **of_value}
                break
    return found


def _cases(provider: Provider, context: Any, name: str) -> list[str]:
    """The parser of an enum lists its cases; there are none if there is no such enum."""
    said = _refusal_of_value(provider, context, "attribute", f"#vhlo<{name} there_is_no_such_case>") or ""
    listed = re.search(r"to be one of: (.*)", said)
    return [case.strip() for case in listed[1].split(",")] if listed else []


def _refusal_of_value(provider: Provider, context: Any, kind: str, text: str) -> str | None:
    parse = provider.ir.Type.parse if kind == "type" else provider.ir.Attribute.parse
    try:
        parse(text, context)
    except provider.ir.MLIRError as error:
        return "\n".join(_messages(error.error_diagnostics))
    return None


def _messages(diagnostics: Sequence[Any]) -> Iterator[str]:
    for diagnostic in diagnostics:
        yield str(diagnostic.message)
        yield from _messages(diagnostic.notes)


def _of_value(prefix: str | None, value: str, versions: Sequence[str], *, is_type: bool = False) -> dict[str, Any]:
    """Return the first and last version of an attribute, or of the type in it, and the numbers with which it begins."""
    provider, context = _library(prefix)
    # Of the one attribute of this op the library takes nothing for granted.
    text = f'%0 = "vhlo.iota_v1"() <{{iota_dimension = {value}}}> : () -> {_TENSOR}'
    there = [version for version in versions if _converted(provider, context, text, version) is not None]
    facts: dict[str, Any] = {}
    if there:
        facts = {"min": there[0], "max": None if there[-1] == versions[-1] else there[-1]}
    data = b"".join(provider.bytecode(provider.parse(context, text), Version(versions[-1])))
    file = decode(data)
    entries = [numbers for each in file.properties if (numbers := _varints(bytes(each.data)))]
    held = next((numbers[0] for numbers in entries if len(numbers) == 1), None)
    if held is not None:
        numbers = _varints(bytes(file.attributes[held].data))
        if is_type:
            numbers = _varints(bytes(file.types[numbers[1]].data))
        facts |= {"code": numbers[0], "value": numbers[1] if len(numbers) == 2 else None}
    return facts


def _varints(data: bytes) -> list[int]:
    """Return the numbers of an entry, as far as it consists of numbers."""
    reader, numbers = ByteReader(view(data)), list[int]()
    with suppress(MalformedArtifactError):
        while reader.remaining:
            numbers.append(reader.varint())
    return numbers


# Survey of the installed library: every question is asked in a child process, which may crash or hang

_QUESTIONS: Final = "vhlo_tools.spec_tools.probing"
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
        candidates = {*library["names"], *self._specs.op_versions}
        candidates |= {f"{op.name}_v{number}" for op in self._specs.ops for number in range(1, _FURTHER + 1)}
        ops = _ask("registered_ops", self._provider, sorted(candidates))
        bytecode = self._answer("the versions of MLIR bytecode", "bytecode_of", versions) or {}
        entries: dict[str, dict[str, dict[str, Any]]] = {
            "version": {version: {"bytecode": number} for version, number in bytecode.items()},
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
        unread = tuple(self._unread)
        return Survey(self._name, current, minimum, entries, encodings=encodings, implied=self._implied, unread=unread)

    def _versions(self, minimum: Version, current: Version) -> list[Version]:
        known = [each.version for each in self._specs.versions if minimum <= each.version <= current]
        newest = self._specs.newest
        if current <= newest:
            return known
        if newest.major != current.major:
            return [*known, current]
        return known + [Version(f"{current.major}.{minor}.0") for minor in range(newest.minor + 1, current.minor + 1)]

    def _ops(self, names: Sequence[str], versions: Sequence[str]) -> dict[str, dict[str, Any]]:
        numbers: dict[str, list[int]] = {}
        for name in names:
            op, _, number = name.rpartition("_v")
            numbers.setdefault(op, []).append(int(number))
        for op, each in sorted(numbers.items()):
            answer = self._answer(op, "ask_op", op, each, versions)
            for name in (f"{op}_v{number}" for number in each):
                facts = (answer or {}).get(name, {})
                self._found[name] = {key: value for key, value in facts.items() if key != "implied"}
                self._implied[name] = facts.get("implied", {})
                if answer is not None and not {"min", "attributes"} <= facts.keys():
                    self._miss(f"all of {name}", f"{name} in a form that the library accepts")
        return self._found

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
