"""Convert passes given as flags to pipelines, as upstream's program does.

Source: ``mlir/lib/Pass/PassRegistry.cpp`` in llvm/llvm-project, and ``stablehlo/transforms/PassPipelines.cpp`` in
openxla/stablehlo.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Final

from vhlo_tools.bindings import Toolbox
from vhlo_tools.records import dataclass
from vhlo_tools.upstream.arguments import UsageError
from vhlo_tools.upstream.own_passes import OWN_PASSES, OwnPass

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
    own: OwnPass | None = None
    options: Mapping[str, str] = field(default_factory=dict)  # those of ``own``

    @property
    def name(self) -> str:
        return self.pipeline if self.own is None else self.own.name


class Passes:
    def __init__(self, toolbox: Toolbox) -> None:
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
        anchor, inner = _taken_apart(pipeline)
        elements = list(_elements(inner))
        if anchor not in (MODULE, "any") or not any(_name_of(each) in _OURS for each in elements):
            self._check(pipeline)
            return [Stage(pipeline)]
        # The library parses the other elements, and all text between them.
        self._check(f"{MODULE}({','.join(map(self._readable, elements))})")
        return list(_joined((stage for each in elements for stage in self._element(each)), MODULE))

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

    def _element(self, element: str) -> list[Stage]:
        name = _name_of(element)
        if name in _OURS:
            return self._stages(name, element[len(name) :].strip().removeprefix("{").removesuffix("}"), MODULE)
        return [Stage(element)]

    def _stages(self, name: str, options: str, anchor: str) -> list[Stage]:
        if name in PIPELINES:
            if options:
                raise UsageError(f"for the --{name} option: it takes no options, but was given '{options}'")
            return [stage for each in PIPELINES[name] for stage in self._stages(*self._written(each), anchor)]
        own = OWN_PASSES.get(name)
        if own is not None and anchor != MODULE:
            raise UsageError(f"--{name} runs on {MODULE}, not on {anchor}")
        if own is not None and own.options is not None:
            return [Stage("", own, own.options_of(options))]
        element = f"{name}{{{options}}}" if options else name
        library = Stage(self._anchored(element, anchor))
        return [library] if own is None else [Stage("", own), library]

    def _written(self, element: str) -> tuple[str, str]:
        name, _, options = element.partition("{")
        current = str(self._toolbox.provider.stablehlo.get_current_version())
        return name, options.removesuffix("}").replace("%current%", current)

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
    """Merge adjacent stages of the library, for a run on ``anchor``."""
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


def _taken_apart(pipeline: str) -> tuple[str, str]:
    anchor, paren, rest = pipeline.strip().partition("(")
    return (anchor, rest[:-1]) if paren and rest.endswith(")") else ("", pipeline)


def _elements(inner: str) -> Iterator[str]:
    """Split at the commas outside of brackets."""
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
