"""Detect donations that jax dropped.

jax donates an argument if an output of its type and shape, or at least of its size, is left for it, and drops the
donation otherwise; for an argument that the function does not use jax drops the argument too. Source:
``_set_up_aliases`` in ``jax/_src/interpreters/mlir.py`` and ``_dce_jaxpr`` in ``jax/_src/interpreters/pxla.py`` of
jax-ml/jax. Dropped donations are recorded in the ``args_info`` of a stage of the function but not in the program; a
``jax.export.Exported`` and its file do not contain them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from vhlo_tools.aliasing import DROPPED, Alias, Donor, finding_of
from vhlo_tools.artifact import Artifact
from vhlo_tools.findings import Finding

_REMEDY: Final = (
    "donate only arguments that an output of the same type and shape can overwrite, or remove it from donate_argnums"
)


def dropped_donations(
    artifact: Artifact,
    args_info: Any,
    kept: Collection[int],
    *,
    before: int = 0,
    names: Sequence[str] | None = None,
) -> list[Finding]:
    """Return a warning for each argument whose donation jax dropped: ``main`` keeps it without one, or lacks it.

    ``kept`` has the indices into the flattened arguments that ``main`` keeps; ``before`` is the number of indices that
    arguments of jax's own take up first.
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
        why = "no output can overwrite it" if number is not None else "the function does not use it"
        called = _called(jax, path) if names is None else names[argument - before]
        message = f"{called}, {info.dtype}{list(info.shape)}, is donated, but jax dropped the donation: {why}"
        found.append(finding_of(program, DROPPED, number, message, _REMEDY))
    return found


def _called(jax: Any, path: Any) -> str:
    """Return the name of an argument as jax writes it in files: ``args[0]['w']``, ``kwargs['x']``."""
    first, *rest = path
    return f"{'kwargs' if first.idx else 'args'}{jax.tree_util.keystr(tuple(rest))}"
