"""Pipelines of passes: their text, their passes, and the list of all passes."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from functools import cache
from importlib.resources import files
from typing import Final

from vhlo_tools.bindings import MlirSession
from vhlo_tools.records import dataclass
from vhlo_tools.upstream.arguments import UsageError
from vhlo_tools.upstream.own_passes import OWN_PASSES, ReimplementedPass

# Scanner of MLIR text, with nesting determined by brackets and strings

_SPACE: Final = re.compile(r"(?:\s|//[^\n]*)*")
_WORD: Final = re.compile(r"[!#]?[\w$.-]+")
_STRING: Final = re.compile(r'"(?:\\.|[^"\\])*"')
_CLOSING: Final = {"<": ">", "[": "]", "{": "}", "(": ")"}


class MismatchError(Exception):
    """A syntax error; ``expected`` is the expected syntax, in MLIR's terms."""

    def __init__(self, expected: str, position: int) -> None:
        super().__init__(f"expected {expected}")
        self.position = position


@dataclass(slots=True)
class Scanner:
    text: str
    position: int = 0

    def peek(self) -> str:
        """Skip spaces and comments, and return the next character; an empty string at the end."""
        if match := _SPACE.match(self.text, self.position):
            self.position = match.end()
        return self.text[self.position : self.position + 1]

    def skips(self, literal: str) -> bool:
        """Return whether a literal comes next, and advance past it if so."""
        before = self.position
        self.peek()
        if not self.text.startswith(literal, self.position):
            self.position = before
            return False
        self.position += len(literal)
        return True

    def expect(self, literal: str) -> None:
        if not self.skips(literal):
            self.peek()
            raise MismatchError(f"'{literal}'", self.position)

    def take(self, pattern: re.Pattern[str], what: str) -> str:
        """Advance past the text of ``pattern``, which must come next; ``what`` is its syntax in MLIR's terms."""
        self.peek()
        match = pattern.match(self.text, self.position)
        if match is None:
            raise MismatchError(what, self.position)
        self.position = match.end()
        return match[0]

    def word(self, what: str) -> str:
        return self.take(_WORD, what)

    def string(self) -> str:
        return self.take(_STRING, "string")

    def bracketed(self) -> str:
        """Return the bracketed text that comes next, with its brackets; an empty string if no bracket comes next."""
        if self.peek() not in _CLOSING:
            return ""
        start, closing = self.position, []
        while self.position < len(self.text):
            character = self.text[self.position]
            if character == '"':
                self.string()
                continue
            if self.text.startswith("//", self.position):
                self.peek()
                continue
            # The arrow of a function type is not a closing bracket.
            self.position += 2 if self.text.startswith("->", self.position) else 1
            if character in _CLOSING:
                closing.append(_CLOSING[character])
            elif character == closing[-1]:
                closing.pop()
                if not closing:
                    return self.text[start : self.position]
        raise MismatchError(f"'{closing[-1]}'", self.position)

    def type(self) -> str:
        word = self.word("type")
        return word + (self.bracketed() if self.text[self.position : self.position + 1] == "<" else "")


def parts_of(text: str) -> list[str]:
    """``text`` is as MLIR has printed it, with its brackets."""
    scanner = Scanner(text[1:-1])
    parts, start = [], 0
    while character := scanner.peek():
        if character == '"':
            scanner.string()
        elif not scanner.bracketed():
            if character == ",":
                parts.append(scanner.text[start : scanner.position].strip())
                start = scanner.position + 1
            scanner.position += 1
    last = scanner.text[start:].strip()
    return [*parts, last] if last else parts


# Convert passes given as flags to pipelines, as upstream's program does
#
# Source: ``mlir/lib/Pass/PassRegistry.cpp`` in llvm/llvm-project, and ``stablehlo/transforms/PassPipelines.cpp`` in
# openxla/stablehlo.

#: The default op that passes run on.
MODULE: Final = "builtin.module"

#: Pipelines of upstream's program that no provider registers, with the passes that they consist of.
PIPELINES: Final[Mapping[str, tuple[str, ...]]] = {
    "chlo-pre-serialization-pipeline": (
        "chlo-legalize-to-stablehlo",
        "shape-legalize-to-stablehlo",
        "reconcile-unrealized-casts",
    ),
    "stablehlo-deserialize": ("vhlo-to-version{target=%current%}", "vhlo-legalize-to-stablehlo"),
}

_OURS: Final = frozenset({*OWN_PASSES, *PIPELINES})
#: A pass of the library without options.
_STAND_IN: Final = "cse"
_ANCHOR: Final = re.compile(r"restricted to '([^']+)'")
_UNKNOWN: Final = re.compile(r"'([^']*)' does not refer to a registered pass")
_NAME: Final = re.compile(r"[a-z0-9][-a-zA-Z0-9_]*")


@dataclass(frozen=True, slots=True)
class Stage:
    """Passes that are run together."""

    pipeline: str  # passes of the library; empty for a pass of this package
    own: ReimplementedPass | None = None
    options: Mapping[str, str] = field(default_factory=dict)  # those of ``own``

    @property
    def name(self) -> str:
        return self.pipeline if self.own is None else self.own.name


class Passes:
    def __init__(self, toolbox: MlirSession) -> None:
        self._toolbox = toolbox

    def includes(self, name: str) -> bool:
        return name in _OURS or (_NAME.fullmatch(name) is not None and self._is_registered(name))

    def _is_registered(self, name: str) -> bool:
        problem = self._toolbox.pipeline_problem(f"{MODULE}({name})")
        return problem is None or _UNKNOWN.search(problem) is None

    def from_flags(self, flags: Iterable[tuple[str, str]], anchor: str = MODULE) -> list[Stage]:
        """``flags`` are names of passes or pipelines with their options; ``anchor`` is the op that they run on."""
        return list(_joined((stage for flag in flags for stage in self._stages(*flag, anchor)), anchor))

    def from_text(self, pipeline: str) -> list[Stage]:
        """``pipeline`` includes its anchor."""
        anchor, paren, rest = pipeline.strip().partition("(")
        anchor, inner = (anchor, rest[:-1]) if paren and rest.endswith(")") else ("", pipeline)
        elements = list(_elements(inner))
        if anchor not in (MODULE, "any") or not any(_name_of(each) in _OURS for each in elements):
            self._check(pipeline)
            return [Stage(pipeline)]
        # The library parses the other elements, and all text between them.
        self._check(f"{MODULE}({','.join(map(self._readable, elements))})")
        stages: list[Stage] = []
        for each in elements:
            if (name := _name_of(each)) in _OURS:
                stages += self._stages(name, each[len(name) :].strip().removeprefix("{").removesuffix("}"), MODULE)
            else:
                stages.append(Stage(each))
        return list(_joined(stages, MODULE))

    def _readable(self, element: str) -> str:
        """Return an element, or a stand-in that the library knows for an element of this package."""
        name = _name_of(element)
        rest = element[len(name) :].strip()
        has_form = not rest or (rest[0], rest[-1]) == ("{", "}")
        return _STAND_IN if has_form and name in _OURS and not self._is_registered(name) else element

    def _check(self, pipeline: str) -> None:
        problem = self._toolbox.pipeline_problem(pipeline)
        if problem is None:
            return
        unknown = _UNKNOWN.search(problem)
        if unknown and unknown[1] in _OURS:
            raise UsageError(f"{unknown[1]} runs directly within {MODULE}(...), in no other op there: {pipeline}")
        raise UsageError(problem.strip())

    def _stages(self, name: str, options: str, anchor: str) -> list[Stage]:
        if name in PIPELINES:
            if options:
                raise UsageError(f"for the --{name} option: it takes no options, but was given '{options}'")
            current = str(self._toolbox.provider.stablehlo.get_current_version())
            written = (each.replace("%current%", current).removesuffix("}").partition("{") for each in PIPELINES[name])
            return [stage for each, _, given in written for stage in self._stages(each, given, anchor)]
        own = OWN_PASSES.get(name)
        if own is not None and anchor != MODULE:
            raise UsageError(f"--{name} runs on {MODULE}, not on {anchor}")
        if own is not None and own.options is not None:
            return [Stage("", own, own.options_of(options))]
        element = f"{name}{{{options}}}" if options else name
        library = Stage(self._anchored(element, anchor))
        return [library] if own is None else [Stage("", own), library]

    def _anchored(self, element: str, anchor: str) -> str:
        """Nest a pass of the library in the op that it requires, for a run on ``anchor``."""
        nested = element
        for _ in range(2):
            problem = self._toolbox.pipeline_problem(f"{anchor}({nested})")
            if problem is None:
                return nested
            inner = _ANCHOR.search(problem)
            if inner is None:
                raise UsageError(problem.strip())
            nested = f"{inner[1]}({element})"
        raise UsageError(f"{element} runs on no op within {anchor}")


def _joined(stages: Iterable[Stage], anchor: str) -> Iterator[Stage]:
    pending: list[str] = []
    for stage in stages:
        if stage.own is None:
            pending.append(stage.pipeline)
            continue
        if pending:
            yield Stage(f"{anchor}({','.join(pending)})")
            pending = []
        yield stage
    if pending:
        yield Stage(f"{anchor}({','.join(pending)})")


def _elements(inner: str) -> Iterator[str]:
    depth, start = 0, 0
    for index, character in enumerate(inner):
        depth += (character in "({[") - (character in ")}]")
        if character == "," and not depth:
            yield inner[start:index].strip()
            start = index + 1
    yield inner[start:].strip()


def _name_of(element: str) -> str:
    match = _NAME.match(element)
    return match[0] if match else ""


# List and describe the passes of a provider
#
# A provider only answers whether it has a pass of a given name, so ``passes.toml`` contains the names.

_OWN_GROUP: Final = "Of this program"
_WIDTH: Final = 52


@cache
def described_passes() -> Mapping[str, Mapping[str, str]]:
    """Return the description of each pass, by name, in groups by subject."""
    text = files("vhlo_tools.upstream").joinpath("passes.toml").read_text(encoding="utf-8")
    groups: dict[str, Mapping[str, str]] = tomllib.loads(text)
    own = {name: each.description for name, each in OWN_PASSES.items()}
    own |= {name: f"Pipeline of {', '.join(each.split('{')[0] for each in parts)}" for name, parts in PIPELINES.items()}
    of_library = {name for group in groups.values() for name in group}
    return {**groups, _OWN_GROUP: {name: text for name, text in own.items() if name not in of_library}}


def known_passes() -> list[str]:
    """The provider may lack some of these passes."""
    return [name for group in described_passes().values() for name in group]


def list_passes(toolbox: MlirSession) -> str:
    lines = []
    for title, group in described_passes().items():
        entries = []
        for name, description in sorted(group.items()):
            options = _own_options(name) if title == _OWN_GROUP else _options(toolbox, name)
            if options is not None:
                entries.append(f"  --{name}".ljust(_WIDTH) + f" - {description}")
                entries += [f"      options: {options}"] if options else []
        lines += [f"{title}:", *entries, ""] if entries else []
    return "\n".join(lines)


def _own_options(name: str) -> str:
    own = OWN_PASSES.get(name)
    return " ".join(f"{key}={value}" for key, value in own.options.items()) if own and own.options else ""


def _options(toolbox: MlirSession, name: str) -> str | None:
    """Return the options with their defaults; ``None`` if the provider lacks the pass."""
    # With the name of an op as anchor, passes for other ops are rejected; `any` accepts all passes.
    said = toolbox.described(f"any({name})")
    if said is None:
        return None
    inner = said.removeprefix("any(").removesuffix(")")
    options = inner.removeprefix(name)
    if not inner.startswith(name) or not options.startswith("{"):
        return ""  # a pipeline, which is printed as its passes
    return " ".join(options[1:-1].split())
