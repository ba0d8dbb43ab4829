"""Signature of a function in a jax.export file: its arguments and results in their trees, types and shardings.

JAX's calling convention (https://docs.jax.dev/en/latest/501/export.html) defines the arguments of ``main``: an index of
the platform if there are several, a token for each ordered effect, and the arguments that were kept. Dimension
variables are no arguments of ``main``, which computes them from shapes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from vhlo_tools.formats.hlo.sharding import hlo_sharding_text
from vhlo_tools.formats.jax_export.schema import DTYPES, MEMORY_SPACES
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.formats.flatbuffer import Table
    from vhlo_tools.formats.jax_export.export_file import JaxExport

_LEAF, _NONE, _TUPLE, _LIST, _DICT, _CUSTOM = range(6)
_TOKEN: Final = 1
_DEVICE: Final = 1
# The limits on the length of text that is shown, and on the depth of trees.
_LONGEST: Final = 400
_DEEPEST: Final = 1000


@dataclass(frozen=True, slots=True)
class JaxValue:
    """An argument or a result."""

    path: str  # expression in the caller, such as ``args[0]['weights']``
    type: str  # as jax prints it, such as ``f32[b,4]``
    sharding: str | None
    main: int | None  # number among the arguments or results of ``main``; None if dropped


@dataclass(frozen=True, slots=True)
class JaxSignature:
    """Arguments and results of a function, and of the ``main`` to which it was lowered."""

    in_tree: str  # ``((positional, ...), {keyword: ...})``
    out_tree: str
    arguments: tuple[JaxValue, ...]  # leaves of ``in_tree``
    results: tuple[JaxValue, ...]  # leaves of ``out_tree``
    main_arguments: tuple[str, ...]  # descriptions
    main_results: tuple[str, ...]  # descriptions


def read_signature(export: JaxExport) -> JaxSignature:
    table = export.table.again()
    in_types, out_types = _types(table, "in"), _types(table, "out")
    in_tree, in_paths = _tree(table, "in_tree", in_types, "args", ("args", "kwargs"))
    out_tree, out_paths = _tree(table, "out_tree", out_types, "result")
    tokens = [f"token of {effect}" for effect in export.ordered_effects]
    first = ["platform index"] if len(export.platforms) > 1 else []
    taken = {index: len(first) + len(tokens) + at for at, index in enumerate(export.kept_arguments)}
    shardings = [_shardings(table, side, len(types)) for side, types in (("in", in_types), ("out", out_types))]
    arguments = tuple(
        JaxValue(path, kind, sharding, taken.get(index))
        for index, (path, kind, sharding) in enumerate(zip(in_paths, in_types, shardings[0], strict=True))
    )
    results = tuple(
        JaxValue(path, kind, sharding, len(tokens) + index)
        for index, (path, kind, sharding) in enumerate(zip(out_paths, out_types, shardings[1], strict=True))
    )
    kept = [
        in_paths[index] if index < len(in_paths) else f"argument {index}, which does not exist"
        for index in export.kept_arguments
    ]
    return JaxSignature(in_tree, out_tree, arguments, results, (*first, *tokens, *kept), (*tokens, *out_paths))


def _types(table: Table, side: str) -> list[str]:
    indices = table.numbers(f"{side}_avals_idxs")
    if not indices:
        return [_type(each) for each in table.tables(f"{side}_avals")]
    # Newer files contain each type once.
    unique = [_type(each) for each in table.tables("unique_avals")]
    return [_chosen(table, unique, index) for index in indices]


def _type(aval: Table) -> str:
    if aval.number("kind") == _TOKEN:
        return "token"
    dtype = aval.number("dtype")
    number = aval.number("memory_space")
    space = MEMORY_SPACES.get(number) if number != _DEVICE else None
    shape = _shortened(",".join(aval.texts("shape")))
    return f"{DTYPES.get(dtype, f'dtype {dtype}')}[{shape}]" + (f" in {space} memory" if space else "")


def _shardings(table: Table, side: str, count: int) -> list[str | None]:
    """Return the shardings of arguments or results; ``None`` for each of the ``count`` values without one."""
    indices = table.numbers(f"{side}_shardings_idxs")
    found: list[str | None]
    if indices:
        meshes = [_mesh(each) for each in table.tables("unique_abstract_meshes")]
        unique = [_named_sharding(each, meshes) for each in table.tables("unique_named_shardings")]
        found = [None if index == 0 else _chosen(table, unique, index - 1) for index in indices]
    else:
        found = [_sharding(each) for each in table.tables(f"{side}_shardings")]
    if len(found) != count and found:
        raise table.reader.malformed(f"has {count} {side}puts with {len(found)} shardings", table.position)
    return found or [None] * count


def _sharding(table: Table) -> str | None:
    named = table.table("named_sharding")
    if named is not None:
        return _named_sharding(named, [])
    if table.place("hlo_sharding_proto") is None:
        return None
    # A message without fields means that the value is replicated.
    return hlo_sharding_text(table.message("hlo_sharding_proto"))


def _named_sharding(table: Table, meshes: list[str]) -> str:
    if meshes:
        mesh = _chosen(table, meshes, table.number("abstract_mesh_idx"))
    else:
        own = table.table("mesh")
        mesh = "no mesh" if own is None else _mesh(own)
    spec, parts = table.table("spec"), []
    if spec is not None:
        parts = [_axes(list(each.texts("axes"))) for each in spec.tables("partitions")]
        parts += [
            f"{key}={{{', '.join(map(repr, names))}}}"
            for key in ("unreduced", "reduced")
            if (names := sorted(spec.texts(key)))
        ]
    memory = table.text("memory_kind")
    text = f"P({_shortened(', '.join(parts))}) over {mesh}"
    return f"{text} in {_shortened(memory)} memory" if memory else text


def _axes(names: list[str]) -> str:
    if len(names) < 2:
        return repr(names[0]) if names else "None"
    return f"({', '.join(map(repr, names))})"


def _mesh(table: Table) -> str:
    sizes, names = table.numbers("axis_sizes"), list(table.texts("axis_names"))
    if len(sizes) != len(names):
        raise table.reader.malformed("has a mesh with axes that lack a name or a size", table.position)
    return _shortened(", ".join(f"{name}={size}" for name, size in zip(names, sizes, strict=True))) or "one device"


def _chosen(table: Table, choices: list[str], index: int) -> str:
    if index >= len(choices):
        raise table.reader.malformed(f"refers to number {index} of {len(choices)}", table.position)
    return choices[index]


def _tree(table: Table, name: str, types: list[str], path: str, names: tuple[str, ...] = ()) -> tuple[str, list[str]]:
    """Return a tree as text, and the path of each leaf; ``names`` are paths of the root's children if irregular."""
    root = table.table(name)
    if root is None:
        return "", [f"{path}[{index}]" for index in range(len(types))]
    walk = _SignatureWalk(types)
    walk.go(root, path, names)
    if len(walk.paths) != len(types):
        message = f"has {len(walk.paths)} leaves in the {name} for {len(types)} types"
        raise table.reader.malformed(message, root.position)
    return "".join(walk.parts), walk.paths


class _SignatureWalk:
    """Traversal of a tree without recursion, because it may be deep."""

    def __init__(self, types: list[str]) -> None:
        self.parts: list[str] = []
        self.paths: list[str] = []
        self._types = types
        # For each level: the remaining children, each with the text before it, and the closing bracket.
        self._open: list[tuple[Iterator[tuple[str, Table, str]], str]] = []

    def go(self, root: Table, path: str, names: tuple[str, ...]) -> None:
        self._enter(root, path, names)
        while self._open:
            children, end = self._open[-1]
            following = next(children, None)
            if following is None:
                self.parts.append(end)
                self._open.pop()
            else:
                before, child, child_path = following
                self.parts.append(before)
                self._enter(child, child_path, ())

    def _enter(self, node: Table, path: str, names: tuple[str, ...]) -> None:
        kind = node.number("kind")
        if kind == _NONE:
            self.parts.append("None")
        elif kind == _LEAF:
            number = len(self.paths)
            self.parts.append(self._types[number] if number < len(self._types) else "*")
            self.paths.append(path)
        elif len(self._open) == _DEEPEST:
            raise node.reader.malformed(f"has a tree deeper than {_DEEPEST}", node.position)
        else:
            begin, end = _brackets(node, kind)
            self.parts.append(begin)
            self._open.append((_children(node, kind, path, names), end))


def _children(node: Table, kind: int, path: str, names: tuple[str, ...]) -> Iterator[tuple[str, Table, str]]:
    keys = node.texts("children_names") if kind == _DICT else iter(())
    for index, child in enumerate(node.tables("children")):
        before = ", " if index else ""
        key = repr(_shortened(next(keys, "?"))) if kind == _DICT else str(index)
        child_path = names[index] if index < len(names) else _shortened(f"{path}[{key}]")
        yield f"{before}{key}: " if kind == _DICT else before, child, child_path


def _brackets(node: Table, kind: int) -> tuple[str, str]:
    if kind == _TUPLE:
        children = node.vector("children")
        return "(", ",)" if children is not None and children.count == 1 else ")"
    if kind == _LIST:
        return "[", "]"
    if kind == _DICT:
        return "{", "}"
    if kind == _CUSTOM:
        return f"{_shortened(node.text('custom_name'))}(", ")"
    # A kind of a newer jax.
    return f"node of kind {kind}(", ")"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
