"""The programs of the corpus of artifacts: those under ``tests/programs`` and ``examples``, and generated ones.

A program comes in several spellings, for no text is understood by all releases: each writes the first that it takes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from corpus_generated import element_types, large_programs
from support.release_environments import run_in

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
# The newest release that reads what the examples are; it turns them into generic text, which more releases parse.
TRANSLATOR = "jaxlib==0.10.2"
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
CHANGED = (
    "uses",
    "uses_of_one",
    "nested_regions",
    "while",
    "calls",
    "uses_across_regions",
    "ops_2000",
    "transformer_step",
    "convnet",
)


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


def model_programs() -> list[Program]:
    """Return what JAX exports, each as the source of all its functions."""
    source = Path(__file__).with_name("corpus_models.py").read_text()
    tables = re.split(r"^(?:MODELS|SYMBOLIC) = ", source, flags=re.MULTILINE)[1:]
    models, symbolic = (re.findall(r'"(\w+)": ["(]', table) for table in tables)
    names = [*models, *(f"{name}_symbolic" for name in symbolic)]
    return [Program(f"jax_{name}", [source]) for name in names]


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


def example_programs() -> Iterator[Program]:
    """Return the examples of StableHLO as old libraries read it, as text: their own, and the generic form of it."""
    for path in sorted(EXAMPLES.iterdir()):
        # What TensorFlow wrote holds ops of MHLO.
        if path.suffix not in (".mlir", ".bc", ".jax_export") or path.name.startswith("tensorflow_"):
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
    from vhlo_tools.files import decode_jax_export

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
