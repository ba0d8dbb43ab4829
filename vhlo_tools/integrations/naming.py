"""Names for the inputs, outputs and weights of models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def paths_of(structure: Any) -> Iterator[tuple[str, ...]]:
    """Yield the path to each leaf of nested mappings, sequences and named tuples, in the order of ``tf.nest``."""
    children: Iterable[tuple[object, Any]]
    if isinstance(structure, Mapping):
        children = ((key, structure[key]) for key in sorted(structure))
    elif isinstance(structure, tuple) and hasattr(structure, "_fields"):
        children = zip(structure._fields, structure, strict=True)
    elif isinstance(structure, list | tuple):
        children = enumerate(structure)
    else:
        yield ()
        return
    for key, child in children:
        for path in paths_of(child):
            yield (str(key), *path)


def joined(paths: Iterable[tuple[str, ...]], stem: str) -> list[str]:
    """Join paths to names: ``state.0``; ``stem`` precedes a leading number: ``output0``, ``output1.mean``."""
    names = []
    for path in paths:
        first, *rest = path or ("0",)
        names.append(".".join([f"{stem}{first}" if first.isdigit() else first, *rest]))
    return names


def unique(names: Iterable[str], taken: Iterable[str] = ()) -> tuple[str, ...]:
    """Append a number to each name that occurred before or that is in ``taken``."""
    seen, result = set(taken), []
    for name in names:
        number, each = 0, name
        while each in seen:
            number += 1
            each = f"{name}_{number}"
        seen.add(each)
        result.append(each)
    return tuple(result)
