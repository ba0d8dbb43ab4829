"""Reader of jax.export files: a FlatBuffer with a portable artifact and the signature of its function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Final

from vhlo_tools.errors import MalformedArtifactError
from vhlo_tools.files.flatbuffer import FlatBufferReader, Layout, Table, replace_vectors
from vhlo_tools.files.hlo import hlo_sharding_text
from vhlo_tools.files.mapping import view
from vhlo_tools.files.recognition import MAGIC
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.files.mapping import Chunk, View
    from vhlo_tools.files.recognition import Buffer

# The schema of jax.export files
#
# The tables are those of ``jax/_src/export/serialization.fbs`` in jax-ml/jax, from jax 0.4.30 to 0.12.0.1; each release
# adds tables, and fields at the end, and moves none. ``serialization.py`` beside it defines their meaning.

JAX_EXPORT: Final = Layout(
    "jax.export",
    {
        "PyTreeDef": (
            "kind: i8",
            "children: [PyTreeDef]",
            "children_names: [string]",
            # Present in jax 0.4.38, not yet in 0.4.30.
            "custom_name: string",
            "custom_auxdata: [u8]",
        ),
        "AbstractDevice": ("device_kind: string", "num_cores: u32", "platform: string"),
        "AbstractMesh": (
            "axis_sizes: [u32]",
            "axis_names: [string]",
            "axis_types: [i8]",
            "abstract_device: AbstractDevice",
        ),
        "PartitionSpecOneAxis": ("axes: [string]",),
        "PartitionSpec": ("partitions: [PartitionSpecOneAxis]", "reduced: [string]", "unreduced: [string]"),
        "NamedSharding": ("mesh: AbstractMesh", "spec: PartitionSpec", "memory_kind: string", "abstract_mesh_idx: u32"),
        "AbstractValue": ("kind: i8", "shape: [string]", "dtype: i8", "memory_space: i8"),
        "Sharding": ("kind: i8", "hlo_sharding_proto: [u8]", "named_sharding: NamedSharding"),
        "Effect": ("type_name: string",),
        "DisabledSafetyCheck": ("kind: i8", "custom_call_target: string"),
        "Exported": (
            "serialization_version: u16",
            "function_name: string",
            "in_tree: PyTreeDef",
            "in_avals: [AbstractValue]",
            "out_tree: PyTreeDef",
            "out_avals: [AbstractValue]",
            "nr_devices_short: i16",
            "in_shardings: [Sharding]",
            "out_shardings: [Sharding]",
            "platforms: [string]",
            "ordered_effects: [Effect]",
            "unordered_effects: [Effect]",
            "disabled_checks: [DisabledSafetyCheck]",
            "mlir_module_serialized: [u8]",
            "calling_convention_version: u16",
            "module_kept_var_idx: [u16]",
            "uses_global_constants: bool",
            "vjp: Exported",
            # Present in jax 0.9.2, not yet in 0.7.2.
            "nr_devices: u32",
            # Present in jax 0.10.2, not yet in 0.9.2: each aval, mesh and sharding once, then their indices.
            "unique_avals: [AbstractValue]",
            "unique_abstract_meshes: [AbstractMesh]",
            "unique_named_shardings: [NamedSharding]",
            "in_avals_idxs: [u32]",
            "out_avals_idxs: [u32]",
            "in_shardings_idxs: [u32]",
            "out_shardings_idxs: [u32]",
            # Present in jax 0.12.0.1, not yet in 0.10.2.
            "jax_version: string",
        ),
    },
)

#: The enum ``DType``, in the syntax in which jax prints the types of arguments.
DTYPES: Final[Mapping[int, str]] = dict(
    enumerate(
        (
            *("bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64", "c64", "c128", "bf16"),
            *("i4", "u4", "f8_e4m3b11fnuz", "f8_e4m3fn", "f8_e4m3fnuz", "f8_e5m2", "f8_e5m2fnuz", "float0"),
            *("f8_e4m3", "f8_e3m4", "f8_e8m0fnu", "f4_e2m1fn", "key<fry>", "key<rbg>", "key<urbg>"),
        )
    )
)

#: The enum ``MemorySpace``; absent in files of releases before 0.8.2.
MEMORY_SPACES: Final[Mapping[int, str]] = {1: "device", 2: "host", 3: "any"}


# Reader of jax.export files: a FlatBuffer with a portable artifact inside, and with others for its derivatives
#
# The path to an artifact and its calling information are read from the bytes, without jax. Of a file of any size, only
# these parts are read.

_ROOT: Final = "Exported"
_MODULE: Final = "mlir_module_serialized"
# The limit on the number of derivatives, each with a program of its own; real files have at most a few.
_MOST_LEVELS: Final = 64
_CHECKS: Final = ("platform", "custom_call", "shape_assertions")


@dataclass(frozen=True, slots=True)
class JaxExport:
    """The description of the artifact in a jax.export file.

    Attributes:
        function_name: The name of the exported function.
        platforms: The platforms for which it was lowered.
        calling_convention_version: The version of JAX's calling convention that it follows.
        kept_arguments: The flat arguments of the function that the artifact's ``main`` still has.
        module: The bytes of the artifact, as a view into the file.
        serialization_version: The version of the format in the file; jax before 0.12 writes 2 or 3 in all files.
        jax_version: The release of jax that wrote the file, if it is recorded.
        devices: The number of devices for which the function was lowered.
        ordered_effects: The types of its ordered effects, for each of which ``main`` has a token.
        unordered_effects: The types of its other effects.
        disabled_checks: The safety checks that were off at export.
        uses_global_constants: Whether the artifact depends on shapes or on the platform.
        table: The table with these values, for access to its other fields.
    """

    function_name: str
    platforms: tuple[str, ...]
    calling_convention_version: int
    kept_arguments: tuple[int, ...]
    module: View
    serialization_version: int
    jax_version: str | None
    devices: int
    ordered_effects: tuple[str, ...]
    unordered_effects: tuple[str, ...]
    disabled_checks: tuple[str, ...]
    uses_global_constants: bool
    table: Table = field(repr=False, compare=False)

    def vjp(self) -> JaxExport | None:
        """Return the function's vector-Jacobian product, or ``None`` if the file does not contain it.

        Raises:
            MalformedArtifactError: If the file is damaged.
        """
        table = self.table.again().table("vjp")
        return None if table is None else _decode(table)

    def levels(self) -> Iterator[JaxExport]:
        """Yield the function, its vector-Jacobian product, the vector-Jacobian product of that, and so on.

        Raises:
            MalformedArtifactError: If one is damaged, or there are unreasonably many.
        """
        level: JaxExport | None = self
        for _ in range(_MOST_LEVELS):
            if level is None:
                return
            yield level
            level = level.vjp()
        raise self.table.reader.malformed(f"has more than {_MOST_LEVELS} derivatives", self.table.position)


def is_jax_export(data: View) -> bool:
    """Whether MLIR bytecode is found in the field for the artifact."""
    try:
        return bytes(_root(data).bytes(_MODULE)[: len(MAGIC)]) == MAGIC
    except MalformedArtifactError:
        return False


def decode_jax_export(data: Buffer) -> JaxExport:
    return _decode(_root(view(data)))


def replace_modules(data: Buffer, replace: Callable[[int, View], Sequence[Chunk]]) -> list[Chunk]:
    """Return a file in pieces, with the artifacts replaced; ``replace`` gets 0 for the function, 1 for its vjp etc.

    With fields unknown to this toolkit, as a newer jax may write, a larger artifact makes the file grow by its whole
    size, with zeros in place of the old one (see :func:`~.flatbuffer_editing.replace_vectors`).
    """
    root = _root(view(data))
    replacements = {}
    for number, level in enumerate(_decode(root).levels()):
        vector = level.table.vector(_MODULE)
        if vector is not None:
            replacements[vector] = list(replace(number, level.module))
    return replace_vectors(root, replacements)


def _root(data: View) -> Table:
    return FlatBufferReader(data, JAX_EXPORT).root(_ROOT)


def _decode(table: Table) -> JaxExport:
    return JaxExport(
        function_name=table.text("function_name"),
        platforms=tuple(table.texts("platforms")),
        calling_convention_version=table.number("calling_convention_version"),
        kept_arguments=table.numbers("module_kept_var_idx"),
        module=table.bytes(_MODULE),
        serialization_version=table.number("serialization_version"),
        jax_version=table.text("jax_version") or None,
        devices=table.number("nr_devices") or table.number("nr_devices_short"),
        ordered_effects=_effects(table, "ordered_effects"),
        unordered_effects=_effects(table, "unordered_effects"),
        disabled_checks=tuple(map(_check, table.tables("disabled_checks"))),
        uses_global_constants=bool(table.number("uses_global_constants")),
        table=table,
    )


def _effects(table: Table, name: str) -> tuple[str, ...]:
    # The names are recorded as Python prints a class.
    texts = (effect.text("type_name") for effect in table.tables(name))
    return tuple(text.removeprefix("<class '").removesuffix("'>") for text in texts)


def _check(table: Table) -> str:
    kind = table.number("kind")
    name = _CHECKS[kind] if 0 <= kind < len(_CHECKS) else f"check {kind}"
    target = table.text("custom_call_target")
    return f"{name} {target}" if target else name


# Parts of a jax.export file that not every release of jax reads, or writes
#
# Source: ``jax/_src/export/serialization.py`` of the releases. The releases that read each part are data, in
# ``dialect_specs/jax_export/parts.toml``.

# The kind of a node of a tree that stands for a registered type; the kinds before it are those of Python itself.
_CUSTOM_NODE = 5


def parts_of(export: JaxExport) -> dict[tuple[str, str], None]:
    """Return the parts as ids with a value, which is empty where the id says all.

    Only the function is examined: jax reads the derivatives in a file when they are called.
    """
    return dict.fromkeys(_parts(export.table.again(), export))


def _parts(table: Table, export: JaxExport) -> Iterator[tuple[str, str]]:
    yield "serialization_version", str(export.serialization_version)
    yield "calling_convention", str(export.calling_convention_version)
    if export.jax_version is not None:
        yield "jax_version", ""
    wide, short = table.number("nr_devices"), table.number("nr_devices_short")
    if wide or short:
        yield ("both_device_counts" if wide and short else "wide_device_count" if wide else "short_device_count"), ""
    unique = list(table.tables("unique_avals"))
    if unique:
        yield "unique_values", ""
    for aval in (*unique, *table.tables("in_avals"), *table.tables("out_avals")):
        number = aval.number("dtype")
        yield "dtype", DTYPES.get(number, str(number))
        if space := aval.number("memory_space"):
            yield "memory_space", MEMORY_SPACES.get(space, str(space))
    for side in ("in_shardings", "out_shardings"):
        for sharding in table.tables(side):
            named = sharding.place("named_sharding") is not None
            xla = sharding.place("hlo_sharding_proto") is not None
            if named or xla:
                yield ("named_sharding" if not xla else "both_shardings" if named else "xla_sharding"), ""
    for tree in ("in_tree", "out_tree"):
        root = table.table(tree)
        waiting = [] if root is None else [root]
        while waiting:
            node = waiting.pop()
            if node.number("kind") >= _CUSTOM_NODE:
                yield "registered_type", node.text("custom_name")
            waiting.extend(node.tables("children"))


# Signature of a function in a jax.export file: its arguments and results in their trees, types and shardings
#
# JAX's calling convention (https://docs.jax.dev/en/latest/501/export.html) defines the arguments of ``main``: an index
# of the platform if there are several, a token for each ordered effect, and the arguments that were kept. Dimension
# variables are no arguments of ``main``, which computes them from shapes.

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
        for each in spec.tables("partitions"):
            axes = [repr(axis) for axis in each.texts("axes")]
            parts.append(f"({', '.join(axes)})" if len(axes) > 1 else axes[0] if axes else "None")
        parts += [
            f"{key}={{{', '.join(map(repr, names))}}}"
            for key in ("unreduced", "reduced")
            if (names := sorted(spec.texts(key)))
        ]
    memory = table.text("memory_kind")
    text = f"P({_shortened(', '.join(parts))}) over {mesh}"
    return f"{text} in {_shortened(memory)} memory" if memory else text


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
    parts: list[str] = []
    paths: list[str] = []
    # For each level the remaining children and the closing bracket: without recursion, because a tree may be deep.
    levels: list[tuple[Iterator[_Node], str]] = [(iter([("", root, path, names)]), "")]
    while levels:
        children, end = levels[-1]
        following = next(children, None)
        if following is None:
            parts.append(end)
            levels.pop()
            continue
        before, node, path, names = following
        parts.append(before)
        kind = node.number("kind")
        if kind == _NONE:
            parts.append("None")
        elif kind == _LEAF:
            parts.append(types[len(paths)] if len(paths) < len(types) else "*")
            paths.append(path)
        elif len(levels) > _DEEPEST:
            raise node.reader.malformed(f"has a tree deeper than {_DEEPEST}", node.position)
        else:
            begin, end = _brackets(node, kind)
            parts.append(begin)
            levels.append((_children(node, kind, path, names), end))
    if len(paths) != len(types):
        message = f"has {len(paths)} leaves in the {name} for {len(types)} types"
        raise table.reader.malformed(message, root.position)
    return "".join(parts), paths


#: A node of a tree: the text before it, its table, its path, and paths of its children if irregular.
_Node = tuple[str, Table, str, tuple[str, ...]]


def _children(node: Table, kind: int, path: str, names: tuple[str, ...]) -> Iterator[_Node]:
    keys = node.texts("children_names") if kind == _DICT else iter(())
    for index, child in enumerate(node.tables("children")):
        before = ", " if index else ""
        key = repr(_shortened(next(keys, "?"))) if kind == _DICT else str(index)
        child_path = names[index] if index < len(names) else _shortened(f"{path}[{key}]")
        yield f"{before}{key}: " if kind == _DICT else before, child, child_path, ()


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
