"""Donations that jax was told of and left out of its programs.

jax gives an argument away if an output of its type and shape, or at least of its size, is left for it, and drops the
donation otherwise; of an argument that the function does not use it drops both. Source: ``_set_up_aliases`` in
``jax/_src/interpreters/mlir.py`` and ``_dce_jaxpr`` in ``jax/_src/interpreters/pxla.py`` of jax-ml/jax. What was
dropped stands in the ``args_info`` of a stage of the function and nowhere in the program; a ``jax.export.Exported`` and
its file do not have it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from vhlo_tools.aliasing import DROPPED, Alias, Donor, finding_of
from vhlo_tools.artifact import Artifact
from vhlo_tools.findings import Finding

__all__ = ["dropped_donations"]

_REMEDY: Final = (
    "donate what an output of the same type and shape can be written over, or leave it out of donate_argnums"
)


def dropped_donations(artifact: Artifact, args_info: Any, kept: Collection[int], *, before: int = 0) -> list[Finding]:
    """Return warnings of arguments that jax was told to give away, and that the program keeps or does not take.

    Args:
        artifact: What jax made of the function.
        args_info: The ``args_info`` of the function's stage: its arguments, each with whether it is donated.
        kept: Which arguments ``main`` takes, in the order in which they are flattened.
        before: How many of those that it takes come before them and are no arguments of the function.
    """
    import jax

    program = artifact.declared_aliases()
    declared = program.declared
    entries: tuple[Alias | Donor, ...] = (*declared.aliases, *declared.donors)
    given = {each.parameter_number for each in entries}
    first = len(declared.signature.parameters) - len(kept)
    numbers = {argument: first + place for place, argument in enumerate(sorted(kept))}
    found = []
    for argument, (path, info) in enumerate(jax.tree_util.tree_flatten_with_path(args_info)[0], before):
        number = numbers.get(argument)
        if not info.donated or number in given:
            continue
        why = "no output can be written over it" if number is not None else "the function does not use it"
        message = f"{_called(jax, path)}, {info.dtype}{list(info.shape)}, is donated, and jax dropped that: {why}"
        found.append(finding_of(program, DROPPED, number, message, _REMEDY))
    return found


def _called(jax: Any, path: Any) -> str:
    """Return what files of jax call an argument: ``args[0]['w']``, ``kwargs['x']``."""
    first, *rest = path
    return f"{'kwargs' if first.idx else 'args'}{jax.tree_util.keystr(tuple(rest))}"
