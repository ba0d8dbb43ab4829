"""Expansion of programs, for an older consumer, without writing them."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Unpack

from vhlo_tools.api.conversion import resolve_target
from vhlo_tools.api.frontends import as_program
from vhlo_tools.compat import expansion_policy
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.bindings import Module
    from vhlo_tools.compat import AllowRelaxed, Expand
    from vhlo_tools.findings import Finding
    from vhlo_tools.program import LoadOptions, ProgramSource
    from vhlo_tools.version import Version


@dataclass(frozen=True, slots=True)
class ExpandedProgram:
    """A program in which features newer than a version were rewritten.

    Attributes:
        module: The program, an ``ir.Module`` of StableHLO.
        findings: A note for each op that was rewritten, with its location, its feature and what it became.
    """

    module: Module
    findings: tuple[Finding, ...]


def expand(
    program: ProgramSource,
    target: str | Version,
    *,
    expand: Expand = True,
    allow_relaxed: AllowRelaxed = (),
    allow_signature_change: bool = False,
    as_of: date | None = None,
    **options: Unpack[LoadOptions],
) -> ExpandedProgram:
    """Rewrite the features of a program that are newer than a target into older ones.

    :func:`vhlo_tools.serialize` does the same with ``expand=True``, and writes the result; what has no expansion
    remains here, and is refused there.

    >>> import vhlo_tools as vt
    >>> program = '''func.func @main(%a: tensor<f32>) -> tensor<f32> {
    ...   %0 = stablehlo.tan %a : tensor<f32>
    ...   return %0 : tensor<f32>
    ... }'''
    >>> vt.expand(program, "1.0.0").findings[0].feature
    'tan'

    Args:
        program: Anything that :func:`vhlo_tools.serialize` accepts; a module is not changed.
        target: The target version or consumer, in the target grammar.
        expand: Which features may be rewritten with the same results: all, or those with these ids.
        allow_relaxed: The ids of the features that may be rewritten with something given up, or ``all``.
        allow_signature_change: Whether that may change the types of arguments and results of public functions.
        as_of: The day from which windows in ``target`` count back, by default today.
        options: See :class:`vhlo_tools.program.LoadOptions`.

    Raises:
        InvalidProgramError: If it is not a valid program.
        MalformedArtifactError: If it is a damaged artifact.
        UnknownTargetError: If the target is unknown.
        InvalidVersionError: If the target looks like a version but is not valid.
        ValueError: If a feature is unknown, or has no such expansion.
    """
    policy = expansion_policy(expand, allow_relaxed, allow_signature_change)
    provider, name = options.get("provider"), options.get("name")
    version = resolve_target(str(target), as_of=as_of, provider=provider).version
    # Imported here because they load the bindings.
    from vhlo_tools.conversion import expand_module
    from vhlo_tools.program import load_program, names_in_utf8

    loaded = load_program(as_program(program, name=name, provider=provider), **options)
    with names_in_utf8(loaded.name):
        module = loaded.load()
        loaded.provider.verify(module)
        expanded = expand_module(loaded.provider, module, version, policy, loaded.name)
    return ExpandedProgram(loaded.provider.as_module(module), expanded.notes)
