"""The programs of the corpus of artifacts: those under ``tests/programs`` and ``examples``, and some that are generated.

A program comes in several spellings, for no text is understood by all releases; a release writes the first that it takes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from environments import run_in

__all__ = ["Program", "all_programs"]

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
# The newest release that reads what the examples are; it turns them into generic text, which more releases parse.
TRANSLATOR = "jaxlib==0.10.2"
# What such text needs from the release that prints it: all attributes in one place, as releases before 0.4.22 want them.
TRANSLATE = """
import sys
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, sdy, stablehlo
registry = ir.DialectRegistry()
_jax_mlir_ext.register_dialects(registry)
context = ir.Context()
context.append_dialect_registry(registry)
for dialect in (chlo, sdy, stablehlo):
    dialect.register_dialect(context)
context.load_all_available_dialects()
source = sys.stdin.buffer.read()
if b"StableHLO_v" in source[:30]:
    module = stablehlo.deserialize_portable_artifact(context, source)
else:
    module = ir.Module.parse(source, context)
print(module.operation.get_asm(enable_debug_info=True, print_generic_op_form=True))
"""
# Ways in which the writer changes a parsed program, so that its values are used in no usual order.
PASSES = "builtin.module(canonicalize,cse)"
CHANGED = ("uses", "nested_regions", "while", "calls", "uses_across_regions", "ops_2000", "transformer_step", "convnet")


@dataclass(frozen=True, slots=True)
class Program:
    """A program to be written.

    Attributes:
        name: Its name, which is that of its artifacts too.
        spellings: Texts of it, the preferred one first.
        mixed: Whether it holds dialects beside StableHLO, so that only some releases can write it.
        shuffle: Whether ops that do not depend on each other are exchanged once it is parsed.
        passes: The pipeline that it is sent through once it is parsed.
    """

    name: str
    spellings: list[str]
    mixed: bool = False
    shuffle: bool = False
    passes: str = ""
    unregistered: bool = field(default=False)

    def as_json(self) -> dict[str, object]:
        """Return what the writer is told of it."""
        return asdict(self)


def all_programs() -> list[Program]:
    """Return all programs; the names are unique."""
    programs = [
        *feature_programs(),
        *corpus_files(),
        *(Program(f"type_{name}", spellings(text)) for name, text in element_types()),
        *(Program(name, spellings(text)) for name, text in large_programs()),
        *example_programs(),
    ]
    known = {program.name: program for program in programs}
    if len(known) != len(programs):
        raise ValueError("two programs of the corpus have the same name")
    return [*programs, *changed_programs(known)]


def changed_programs(known: dict[str, Program]) -> Iterator[Program]:
    """Return programs whose values are not used in the order in which a parser meets the uses."""
    for name in CHANGED:
        program = known[name]
        yield Program(f"{name}+shuffled", program.spellings, program.mixed, shuffle=True)
        yield Program(f"{name}+cse", program.spellings, program.mixed, passes=PASSES)


def feature_programs() -> Iterator[Program]:
    """Return the program of each feature."""
    for path in sorted((ROOT / "tests/programs/features").glob("*.mlir")):
        yield Program(f"feature_{path.stem}", spellings(path.read_text()))


def corpus_files() -> Iterator[Program]:
    """Return the programs that are written down for the corpus."""
    for path in sorted((ROOT / "tests/programs/corpus").glob("*.mlir")):
        _, *parts = re.split(r"^// ----- (\w+)\n", path.read_text(), flags=re.MULTILINE)
        for name, text in zip(parts[::2], parts[1::2], strict=True):
            mixed = name.startswith("mixed_")
            yield Program(name, spellings(text), mixed, unregistered="unknown" in text and mixed)


def spellings(text: str) -> list[str]:
    """Return ``text`` and what releases of other ages want: no ranges in locations, and dense attributes for arrays."""
    plain = re.sub(r'("(?:[^"\\]|\\.)*":\d+:\d+) to \d*:\d+', r"\1", text)  # without ranges in locations
    dense = re.sub(r"array<(i64|i1)(?:: ([^>]*))?>", as_dense, plain)
    return list(dict.fromkeys((text, plain, dense)))


def as_dense(array: re.Match[str]) -> str:
    """Return the dense attribute that means the same as a dense array."""
    items = array[2].split(", ") if array[2] else []
    values = f"[{', '.join(items)}]" if items else ""
    return f"dense<{values}> : tensor<{len(items)}x{array[1]}>"


INTEGERS = {f"{sign}i{width}": width for sign in ("", "u") for width in (2, 4, 8, 16, 32, 64)}
FLOATS = [
    *("f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f8E5M2FNUZ", "f8E4M3B11FNUZ", "f8E4M3", "f8E3M4", "f8E8M0FNU"),
    *("f4E2M1FN", "f6E2M3FN", "f6E3M2FN", "bf16", "f16", "f32", "f64", "tf32"),
]


def element_types() -> Iterator[tuple[str, str]]:
    """Return programs that take, return and hold as constants one type of element each."""
    yield "i1", constants("i1", "true", ["true", "false", "true", "true"])
    yield "i1_nine", constants("i1", "false", ["true", "false", "true", "true", "false", "true", "false", "false", "true"])
    yield "index", constants("index", "7", ["1", "0", "4294967296", "2"])
    for name, width in INTEGERS.items():
        low, high = (0, 2**width - 1) if name[0] == "u" else (-(2 ** (width - 1)), 2 ** (width - 1) - 1)
        yield name, constants(name, str(high), [str(low), str(high), "1", "0"])
    for name in FLOATS:
        power = name == "f8E8M0FNU"  # which has neither zero nor sign
        yield name, constants(name, "1.0", ["1.0", "2.0", "4.0", "1.0"] if power else ["1.0", "-2.0", "0.0", "1.5"])
    for name in ("f32", "f64"):
        values = ["(1.0, -1.0)", "(0.0, 2.0)", "(-0.0, 0.5)", "(1.0e+10, 3.0)"]
        yield f"complex_{name}", constants(f"complex<{name}>", "(1.0, 2.0)", values)
    yield "special_floats", constants("f32", "0x7FC00000", ["0x7F800000", "0xFF800000", "-0.0", "1.0e-45"])
    for storage, expressed in (("i8", "f32"), ("u8", "f32"), ("i16", "f32"), ("i32", "f64"), ("i4", "f16"), ("u16", "bf16")):
        kind = f"!quant.uniform<{storage}:{expressed}, 2.5e-01:3>"
        yield f"quant_{storage}_{expressed}", signature(kind)
    for dimensions in ("", "0x", "1x1x1x1x1x1x1x", "?x3x?x", "2147483648x", "4x0x?x"):
        name = dimensions.replace("?", "d") or "scalar"
        yield f"shape_{name}", f"func.func @main(%x: tensor<{dimensions}i8>) -> tensor<{dimensions}i8> {{\n  return %x : tensor<{dimensions}i8>\n}}\n"


def constants(kind: str, splat: str, values: list[str]) -> str:
    """Return a program with constants of every layout: scalar, splat, list, matrix, without elements."""
    forms = [
        ("", splat),
        ("3x2x", splat),
        (f"{len(values)}x", f"[{', '.join(values)}]"),
        (f"2x{len(values)}x", f"[[{', '.join(values)}], [{', '.join(reversed(values))}]]"),
        ("0x", ""),
        ("2x0x", ""),
        ("1x", f"[{values[1]}]"),
    ]
    lines = [f"func.func @main(%x: tensor<4x{kind}>) -> (tensor<4x{kind}>, tensor<{kind}>) {{"]
    for index, (dimensions, value) in enumerate(forms):
        tensor = f"tensor<{dimensions}{kind}>"
        lines.append(f'  %{index} = "stablehlo.constant"() {{value = dense<{value}> : {tensor}}} : () -> {tensor}')
    lines += [f"  return %x, %0 : tensor<4x{kind}>, tensor<{kind}>", "}", ""]
    return "\n".join(lines)


def signature(kind: str) -> str:
    """Return a program that hands its argument on."""
    return f"func.func @main(%x: tensor<4x{kind}>) -> tensor<4x{kind}> {{\n  return %x : tensor<4x{kind}>\n}}\n"


def large_programs() -> Iterator[tuple[str, str]]:
    """Return programs with much of something."""
    f32 = "tensor<f32>"
    binary = f"({f32}, {f32}) -> {f32}"
    for count in (64, 300):
        arguments = ", ".join(f"%a{i}: {f32}" for i in range(count))
        returned = ", ".join(f"%a{i}" for i in reversed(range(count)))
        types = ", ".join([f32] * count)
        yield f"arguments_{count}", f"func.func @main({arguments}) -> ({types}) {{\n  return {returned} : {types}\n}}\n"
    for count in (40, 2000):
        ops = [f'  %{i} = "stablehlo.{("add", "multiply", "subtract")[i % 3]}"({used(i)}) : {binary}' for i in range(count)]
        body = "\n".join(ops)
        yield f"ops_{count}", f"func.func @main(%x: {f32}, %y: {f32}) -> {f32} {{\n{body}\n  return %{count - 1} : {f32}\n}}\n"
    ops = "\n".join(f'  %{i} = "stablehlo.{op}"(%x, %y) : {binary}' for i, op in enumerate(["add", "multiply", "power"] * 2))
    yield "uses", f"func.func @main(%x: {f32}, %y: {f32}) -> ({f32}, {f32}) {{\n{ops}\n  return %0, %5 : {f32}, {f32}\n}}\n"
    yield "uses_across_regions", uses_across_regions()
    yield "deep", deep(24)
    yield "functions_60", functions(60)
    values = ", ".join(f"{i}.25" for i in range(600))
    constant = f'"stablehlo.constant"() {{value = dense<[{values}]> : tensor<600xf32>}} : () -> tensor<600xf32>'
    yield "constant_600", f"func.func @main() -> tensor<600xf32> {{\n  %0 = {constant}\n  return %0 : tensor<600xf32>\n}}\n"
    text = "x" * 3000
    call = f'"stablehlo.custom_call"(%x) {{call_target_name = "k", backend_config = "{text}"}} : ({f32}) -> {f32}'
    yield "long_string", f"func.func @main(%x: {f32}) -> {f32} {{\n  %0 = {call}\n  return %0 : {f32}\n}}\n"


def used(index: int) -> str:
    """Return two operands for the op of this index among many."""
    return "%x, %y" if index < 2 else f"%{index - 1}, %{index * 7 % index if index % 5 else index // 2}"


def uses_across_regions() -> str:
    """Return a program whose regions use values from outside, several times each."""
    f32 = "tensor<f32>"
    branch = f"""
    %1 = "stablehlo.add"(%s, %x) : ({f32}, {f32}) -> {f32}
    %2 = "stablehlo.add"(%x, %s) : ({f32}, {f32}) -> {f32}
    %3 = "stablehlo.multiply"(%1, %2) : ({f32}, {f32}) -> {f32}
    "stablehlo.return"(%3, %s, %s) : ({f32}, {f32}, {f32}) -> ()
"""
    return f"""func.func @main(%p: tensor<i1>, %i: tensor<i32>, %x: {f32}) -> {f32} {{
  %s = "stablehlo.sine"(%x) : ({f32}) -> {f32}
  %0:3 = "stablehlo.if"(%p) ({{{branch}  }}, {{{branch}  }}) : (tensor<i1>) -> ({f32}, {f32}, {f32})
  %4:3 = "stablehlo.case"(%i) ({{{branch}  }}, {{{branch}  }}, {{{branch}  }}) : (tensor<i32>) -> ({f32}, {f32}, {f32})
  %5 = "stablehlo.add"(%4#2, %4#1) : ({f32}, {f32}) -> {f32}
  %6 = "stablehlo.add"(%4#1, %4#2) : ({f32}, {f32}) -> {f32}
  %7 = "stablehlo.add"(%4#2, %4#2) : ({f32}, {f32}) -> {f32}
  %8 = "stablehlo.add"(%s, %0#1) : ({f32}, {f32}) -> {f32}
  %9 = "stablehlo.add"(%7, %8) : ({f32}, {f32}) -> {f32}
  return %9 : {f32}
}}
"""


def deep(levels: int) -> str:
    """Return a program with regions in regions."""
    start = '"stablehlo.if"(%p) ({' * levels
    end = '"stablehlo.return"(%x) : (tensor<f32>) -> ()\n'
    other = f"}}, {{\n{end}}}) : (tensor<i1>) -> tensor<f32>\n"
    names = [f"%r{level}" for level in range(levels)]
    body = "".join(f"{name} = {start[: len(start) // levels]}\n" for name in names) + end
    for name in reversed(names):
        body += other + (f'"stablehlo.return"({name}) : (tensor<f32>) -> ()\n' if name != names[0] else "")
    return f"func.func @main(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {{\n{body}return %r0 : tensor<f32>\n}}\n"


def functions(count: int) -> str:
    """Return a program with many functions, each calling the next."""
    types = ["tensor<f32>"] * 2
    lines = []
    for index in range(count):
        visibility = "private " if index else ""
        name = f"f{index}" if index else "main"
        lines.append(f"func.func {visibility}@{name}(%x: {types[0]}) -> {types[1]} {{")
        if index + 1 < count:
            lines.append(f"  %0 = func.call @f{index + 1}(%x) : ({types[0]}) -> {types[1]}")
        lines += [f"  return %{0 if index + 1 < count else 'x'} : {types[1]}", "}"]
    return "\n".join([*lines, ""])


def example_programs() -> Iterator[Program]:
    """Return the examples, as text: their own, and the generic form of it."""
    for path in sorted(EXAMPLES.iterdir()):
        if path.suffix not in (".mlir", ".bc", ".jax_export"):
            continue
        data = path.read_bytes()
        if path.suffix == ".jax_export":
            data = artifact_in_export(data)
        generic = translate(data)
        texts = [data.decode()] if path.suffix == ".mlir" else []
        texts += [generic, *spellings(without_properties(generic))]
        yield Program(path.stem, list(dict.fromkeys(texts)), mixed="sdy." in generic)


def artifact_in_export(data: bytes) -> bytes:
    """Return the artifact that a jax.export file holds."""
    from vhlo_tools.artifact import decode_jax_export

    return bytes(decode_jax_export(data).module)


def translate(data: bytes) -> str:
    """Return a module as generic text with its locations."""
    done = run_in(TRANSLATOR, TRANSLATE, input=data)
    if done.returncode:
        raise RuntimeError(done.stderr.decode())
    return done.stdout.decode()


def without_properties(text: str) -> str:
    """Return generic text with the properties of each op, ``<{...}>``, among its other attributes at the end."""
    while (start := text.rfind("<{")) >= 0:  # the innermost op of all that follow is met first
        end = closing(text, start + 1)
        inner, rest = text[start + 2 : end - 1], text[end + 1 :]
        at = closing(rest, 1) if rest.startswith(" (") else 0
        if rest[at:].startswith(" {"):
            rest = f"{rest[:at]} {{{inner}, {rest[at + 2 :]}"
        else:
            rest = f"{rest[:at]} {{{inner}}}{rest[at:]}"
        text = text[:start].rstrip() + rest
    return text


def closing(text: str, start: int) -> int:
    """Return where the bracket that opens at ``start`` has closed; strings are skipped."""
    depth = 0
    for token in re.finditer(r'"(?:[^"\\]|\\.)*"|[({\[\]})]', text[start:]):
        depth += {"(": 1, "{": 1, "[": 1, ")": -1, "}": -1, "]": -1}.get(token[0], 0)
        if depth == 0 and token[0] in ")}]":
            return start + token.end()
    raise ValueError("a bracket is never closed")
