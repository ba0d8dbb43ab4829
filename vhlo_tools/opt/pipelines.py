"""Passes given as flags, put into the pipelines that upstream's program makes of them.

Source: ``mlir/lib/Pass/PassRegistry.cpp`` in llvm/llvm-project, and ``stablehlo/transforms/PassPipelines.cpp`` in
openxla/stablehlo.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from vhlo_tools.bindings.toolbox import Toolbox
from vhlo_tools.opt.arguments import UsageError
from vhlo_tools.opt.own_passes import OWN_PASSES, OwnPass

__all__ = ["PIPELINES", "Passes", "Stage"]

#: Pipelines that upstream's program has and no provider registers, by what they consist of.
PIPELINES: Final[Mapping[str, tuple[str, ...]]] = {
    "chlo-pre-serialization-pipeline": (
        "chlo-legalize-to-stablehlo",
        "shape-legalize-to-stablehlo",
        "reconcile-unrealized-casts",
    ),
    "stablehlo-deserialize": ("vhlo-to-version{target=%current%}", "vhlo-legalize-to-stablehlo"),
}

_CHLO: Final = "chlo-legalize-to-stablehlo"
_ANCHOR: Final = re.compile(r"restricted to '([^']+)'")
_UNKNOWN: Final = "does not refer to a registered pass"
_NAME: Final = re.compile(r"[a-z0-9][-a-zA-Z0-9_]*")


@dataclass(frozen=True, slots=True)
class Stage:
    """What is run at once.

    Attributes:
        pipeline: Passes of the library, as text; empty for one that is ours.
        own: The pass of ours.
        options: Its options.
    """

    pipeline: str
    own: OwnPass | None = None
    options: Mapping[str, str] | None = None

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return self.pipeline if self.own is None else self.own.name

    def run(self, toolbox: Toolbox, module: Any, runner: Callable[[str], bool]) -> bool:
        """Run it on a module, in place; return whether it succeeded.

        Args:
            toolbox: The bindings.
            module: The module.
            runner: What runs passes of the library.
        """
        if self.own is None:
            return (_CHLO not in self.pipeline or _scans_legalized(toolbox, module)) and runner(self.pipeline)
        self.own.run(toolbox, module, self.options or {})
        return True


def _scans_legalized(toolbox: Toolbox, module: Any) -> bool:
    """Legalize scans where the library does not do so rightly; say which cannot be."""
    # Not at the top: it is much to load for those who do not use CHLO.
    from vhlo_tools.portable import legalize_scans, legalizes_scans

    if legalizes_scans(toolbox.provider):
        return True
    left = legalize_scans(toolbox.provider, module)
    for op in left:
        op.location.emit_error(f"failed to legalize operation '{op.name}' that was explicitly marked illegal")
    return not left


class Passes:
    """The passes of a provider, and those of ours.

    Args:
        toolbox: The bindings.
    """

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox

    def includes(self, name: str) -> bool:
        """Tell whether there is a pass or a pipeline of a name."""
        if name in OWN_PASSES or name in PIPELINES:
            return True
        if not _NAME.fullmatch(name):
            return False
        problem = self._toolbox.pipeline_problem(f"builtin.module({name})")
        return problem is None or _UNKNOWN not in problem

    def from_flags(self, flags: Iterable[tuple[str, str]]) -> list[Stage]:
        """Return what flags run, in order.

        Args:
            flags: Names of passes or pipelines, each with its options.

        Raises:
            UsageError: If a pass does not take its options.
        """
        return list(_joined(self._stage(name, options) for name, options in flags))

    def from_text(self, pipeline: str) -> list[Stage]:
        """Return what a pipeline runs, which is written as text with its anchor.

        Raises:
            UsageError: If it cannot be parsed.
        """
        anchor, inner = _taken_apart(pipeline)
        elements = list(_elements(inner))
        if anchor == "builtin.module" and any(_name_of(each) in {*OWN_PASSES, *PIPELINES} for each in elements):
            return list(_joined(self._element(each) for each in elements))
        if problem := self._toolbox.pipeline_problem(pipeline):
            raise UsageError(problem.strip())
        return [Stage(pipeline)]

    def _element(self, element: str) -> Stage | list[Stage]:
        name = _name_of(element)
        if name in OWN_PASSES or name in PIPELINES:
            return self._stage(name, element[len(name) :].removeprefix("{").removesuffix("}"))
        if problem := self._toolbox.pipeline_problem(f"builtin.module({element})"):
            raise UsageError(problem.strip())
        return Stage(element)

    def _stage(self, name: str, options: str) -> Stage | list[Stage]:
        if name in OWN_PASSES:
            own = OWN_PASSES[name]
            return Stage("", own, own.options_of(options))
        if name in PIPELINES:
            if options:
                raise UsageError(f"for the --{name} option: it takes no options, but was given '{options}'")
            return [stage for each in PIPELINES[name] for stage in _listed(self._stage(*self._written(each)))]
        element = f"{name}{{{options}}}" if options else name
        return Stage(self._anchored(element))

    def _written(self, element: str) -> tuple[str, str]:
        name, _, options = element.partition("{")
        current = str(self._toolbox.provider.stablehlo.get_current_version())
        return name, options.removesuffix("}").replace("%current%", current)

    def _anchored(self, element: str) -> str:
        """Return a pass of the library nested in the op that it runs on."""
        nested = element
        for _ in range(2):
            problem = self._toolbox.pipeline_problem(f"builtin.module({nested})")
            if problem is None:
                return nested
            anchor = _ANCHOR.search(problem)
            if anchor is None:
                raise UsageError(problem.strip())
            nested = f"{anchor[1]}({element})"
        raise UsageError(f"{element} runs on no op within a module")


def _listed(stages: Stage | list[Stage]) -> list[Stage]:
    return stages if isinstance(stages, list) else [stages]


def _joined(stages: Iterable[Stage | list[Stage]]) -> Iterator[Stage]:
    """Yield stages, what follows each other in the library as one, anchored at the module."""
    pending: list[str] = []
    for stage in (each for many in stages for each in _listed(many)):
        if stage.own is None:
            pending.append(stage.pipeline)
            continue
        if pending:
            yield Stage(f"builtin.module({','.join(pending)})")
            pending = []
        yield stage
    if pending:
        yield Stage(f"builtin.module({','.join(pending)})")


def _taken_apart(pipeline: str) -> tuple[str, str]:
    anchor, paren, rest = pipeline.strip().partition("(")
    return (anchor, rest[:-1]) if paren and rest.endswith(")") else ("", pipeline)


def _elements(inner: str) -> Iterator[str]:
    """Yield the parts between commas that stand in no brackets."""
    depth, start = 0, 0
    for index, character in enumerate(inner):
        depth += (character in "({[") - (character in ")}]")
        if character == "," and not depth:
            yield inner[start:index].strip()
            start = index + 1
    if inner[start:].strip():
        yield inner[start:].strip()


def _name_of(element: str) -> str:
    match = _NAME.match(element)
    return match[0] if match else ""
