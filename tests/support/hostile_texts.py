"""Files other than bytecode that are nothing but one kind of thing: MLIR text, HLO, jax.export and torch.export files.

As in :mod:`support.hostile_shapes`, a shape makes a file of about as many bytes as it is asked for.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from functools import partial
from typing import Final

import vhlo_tools as vt
from support.jax_export_writer import LIST, TUPLE, Writer
from support.protobuf_messages import field

_MAIN: Final = "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n"
_HEAD: Final = "HloModule m, entry_computation_layout={(f32[2]{0})->f32[2]{0}}\n\n"
_ENTRY: Final = "ENTRY e {\n  a = f32[2]{0} parameter(0)\n"
_RESULT: Final = "  ROOT r = f32[2]{0} add(a, a)\n}\n"
_ONE: Final = "HloModule m\n\nENTRY e {\n  ROOT a = "

#: The text before, the one that is repeated, with its number in place of ``$``, and the text after.
_REPEATED: Final = {
    "MLIR: quotes that do not end": ("", '"', ""),
    "MLIR: blank lines": ("module {", "\n", "}"),
    "MLIR: comments": ("module {\n", "// (\n", "}"),
    "MLIR: one long line": ("module attributes {x = [", "a ", "]} {}"),
    "MLIR: brackets": ("", "[", ""),
    "MLIR: ops": (_MAIN, "  %v$ = stablehlo.add %a, %a : tensor<2xf32>\n", "return %a : tensor<2xf32>\n}\n"),
    "MLIR: functions": ("", "func.func private @f$(tensor<2xf32>) -> tensor<2xf32>\n", ""),
    "MLIR: attributes": ("module attributes {x = {", "k$ = 1, ", "z = 1}} {}"),
    "MLIR: locations": ("module {}\n", '#loc$ = loc("f":1:1)\n', ""),
    "MLIR: values of a constant": (
        "func.func @main() { %0 = stablehlo.constant dense<[",
        "1, ",
        "1]> : tensor<2xi8>\nreturn }",
    ),
    "MLIR: dimensions": ("func.func private @f(tensor<", "1x", "f32>)"),
    "HLO: instructions": (_HEAD + _ENTRY, "  v$ = f32[2]{0} add(a, a)\n", _RESULT),
    "HLO: computations": (_HEAD, "c$ {\n  ROOT p$ = f32[] parameter(0)\n}\n\n", _ENTRY + _RESULT),
    "HLO: a wide tuple": (f"{_ONE}(", "f32[2], ", "f32[]) x()\n}"),
    "HLO: nested tuples": (_ONE, "(", "f32[] x()\n}"),
    "HLO: aliases": (
        "HloModule m, input_output_alias={ ",
        "{$}: ($, {}, may-alias), ",
        f" }}\n\n{_ENTRY}{_RESULT}",
    ),
    "HLO: donors": ("HloModule m, buffer_donor={ ", "($, {}), ", f" }}\n\n{_ENTRY}{_RESULT}"),
    "HLO: parameters of a layout": (
        "HloModule m, entry_computation_layout={(",
        "f32[2]{0}, ",
        f"f32[])->f32[2]{{0}}}}\n\n{_ENTRY}{_RESULT}",
    ),
    "HLO: metadata": (
        _HEAD + _ENTRY,
        '  v$ = f32[2]{0} add(a, a), metadata={op_name="x" source_file="f" source_line=$}\n',
        _RESULT,
    ),
    "HLO: blank lines": (_HEAD + _ENTRY, " \n", _RESULT),
    "HLO: comments": (_HEAD + _ENTRY, "/* */", _RESULT),
    "HLO: braces": (_HEAD, "{", ""),
}


def _repeated(size: int, before: str, text: str, after: str) -> bytes:
    repeated = "".join(text.replace("$", f"{each}") for each in range(size // len(text)))
    return (before + repeated + after).encode()


# HLO as a message (HloModuleProto in ``xla/service/hlo.proto``, ShapeProto in ``xla/xla_data.proto``)

_SHAPE: Final = field(2, 11) + field(3, b"\2")


def _instruction(number: int, shape: bytes = _SHAPE) -> bytes:
    return field(1, f"v{number}") + field(2, "parameter") + field(3, shape) + field(35, number + 1)


def _module(instructions: bytes, *, program: bytes = field(1, _SHAPE) + field(2, _SHAPE), more: bytes = b"") -> bytes:
    computation = field(1, "e") + instructions + field(4, program) + field(5, 1) + field(6, 1)
    module = field(1, "m") + field(2, "e") + field(3, computation) + field(4, program) + field(5, 1) + field(6, 1)
    return module + more


def _many(size: int, each: Callable[[int], bytes]) -> bytes:
    return b"".join(map(each, range(max(1, size // len(each(1000))))))


def _nested(size: int) -> bytes:
    shape, made = _SHAPE, 0
    while made < size:
        shape = field(4, shape)
        made = len(shape)
        # A level takes as many bytes as the length of what is in it.
        if made > 4000:
            shape = field(4, shape) * max(1, size // made)
            break
    return _module(field(2, _instruction(0, field(2, 13) + shape)))


_MESSAGES: Final[dict[str, Callable[[int], bytes]]] = {
    "message: instructions": lambda size: _module(_many(size, lambda number: field(2, _instruction(number)))),
    "message: empty instructions": lambda size: _module(field(2, b"") * (size // 2)),
    "message: a wide tuple": lambda size: _module(
        field(2, _instruction(0, field(2, 13) + field(4, _SHAPE) * (size // 8)))
    ),
    "message: empty shapes of a tuple": lambda size: _module(
        field(2, _instruction(0, field(2, 13) + field(4, b"") * (size // 2)))
    ),
    "message: nested tuples": _nested,
    "message: dimensions": lambda size: _module(field(2, _instruction(0, field(2, 11) + field(3, b"\1" * size)))),
    "message: parameters": lambda size: _module(
        field(2, _instruction(0)), program=field(1, _SHAPE) * (size // 8) + field(2, _SHAPE)
    ),
    "message: aliases": lambda size: _module(
        field(2, _instruction(0)),
        more=field(8, _many(size, lambda number: field(1, field(1, number) + field(2, number) + field(4, 1)))),
    ),
    "message: unknown fields": lambda size: _module(field(2, _instruction(0)), more=field(1000, b"") * (size // 3)),
    "message: empty computations": lambda size: _module(field(2, _instruction(0)), more=field(3, b"") * (size // 2)),
}

# Containers


def _jax_export(size: int, values: Callable[[Writer, int], dict[str, int]]) -> bytes:
    writer = Writer(bytes(vt.serialize("func.func @main() { return }", "1.0.0")))
    return writer.file(**values(writer, size // 4))


def _chain(writer: Writer, size: int) -> int:
    node = writer.leaf()
    for _ in range(size // 8):
        node = writer.tree(LIST, [node])
    return node


def _derivatives(writer: Writer, size: int) -> dict[str, int]:
    module = writer.builder.CreateByteVector(b"ML\xefR\1")
    one = writer.table("Exported", mlir_module_serialized=module, in_avals=writer.offsets([writer.aval()] * size))
    return {"vjp": writer.table("Exported", mlir_module_serialized=module, vjp=one)}


_EXPORTS: Final[dict[str, Callable[[Writer, int], dict[str, int]]]] = {
    "jax.export: arguments of one type": lambda writer, size: {
        "in_avals": writer.offsets([writer.aval()] * size),
        "in_tree": writer.tree(TUPLE, [writer.leaf()] * size),
    },
    "jax.export: a chain of trees": lambda writer, size: {"in_tree": _chain(writer, size)},
    "jax.export: dimensions": lambda writer, size: {
        "in_avals": writer.offsets([writer.aval(*[writer.text("2")] * size)])
    },
    "jax.export: platforms": lambda writer, size: {"platforms": writer.offsets([writer.text("cpu")] * size)},
    "jax.export: effects": lambda writer, size: {
        "ordered_effects": writer.offsets([writer.table("Effect", type_name=writer.text("<class 'a'>"))] * size)
    },
    "jax.export: checks": lambda writer, size: {
        "disabled_checks": writer.offsets([writer.table("DisabledSafetyCheck", kind=1)] * size)
    },
    "jax.export: shardings": lambda writer, size: {"in_shardings": writer.offsets([writer.table("Sharding")] * size)},
    "jax.export: a derivative": _derivatives,
}


def _zip(size: int, *, entries: bool) -> bytes:
    out = io.BytesIO()
    program: object = {"graph_module": {}, "schema_version": {}} if entries else {"graph_module": [[]] * (size // 4)}
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a/archive_format", "pt2")
        archive.writestr("a/models/model.json", json.dumps(program))
        for each in range(size // 150 if entries else 0):
            archive.writestr(f"a/data/weights/{each}", b"")
    return out.getvalue()


#: Files of one kind of thing, by what is said of them.
TEXTS: Final[dict[str, Callable[[int], bytes]]] = {
    **{
        name: partial(_repeated, before=before, text=text, after=after)
        for name, (before, text, after) in _REPEATED.items()
    },
    "MLIR: brackets that end": lambda size: b"[" * (size // 2) + b"]" * (size // 2),
    **_MESSAGES,
    **{name: partial(_jax_export, values=values) for name, values in _EXPORTS.items()},
    "torch.export: entries": partial(_zip, entries=True),
    "torch.export: one list": partial(_zip, entries=False),
}
