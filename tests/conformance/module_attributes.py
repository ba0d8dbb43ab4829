"""Attributes of modules, which no conversion changes, against releases: ``module_attributes.py [--number N]``.

Draws attributes of MLIR itself, StableHLO, CHLO, Shardy and quantized types, as text and nested in each other, writes
each with the installed library for a version of a release, has the releases read them, and compares with what
``check --readable-by`` says. The grammar is that of MLIR and of the dialects (``AttrTypeBase.td``, ``BuiltinTypes.td``,
``StablehloAttrs.td``, ``ChloEnums.td``, ``QuantTypes.td``), and asks the specification nothing.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.release_environments import read_by

import vhlo_tools as vt
from vhlo_tools.compat import nesting_findings

RELEASES = ("0.4.20", "0.4.26", "0.4.31", "0.4.35", "0.5.3", "0.8.3")
FLOATS = (
    "f16",
    "bf16",
    "f32",
    "f64",
    "f80",
    "f128",
    "tf32",
    "f8E5M2",
    "f8E4M3",
    "f8E4M3FN",
    "f8E5M2FNUZ",
    "f8E4M3FNUZ",
)
FLOATS_OF_FEW_BITS = ("f8E4M3B11FNUZ", "f8E3M4", "f4E2M1FN", "f6E2M3FN", "f6E3M2FN", "f8E8M0FNU")
ENUMS = (
    "#stablehlo<comparison_direction {EQ,NE,GE,GT,LE,LT}>",
    "#stablehlo<comparison_type {NOTYPE,FLOAT,TOTALORDER,SIGNED,UNSIGNED}>",
    "#stablehlo<fft_type {FFT,IFFT,RFFT,IRFFT}>",
    "#stablehlo<precision {DEFAULT,HIGH,HIGHEST}>",
    "#stablehlo<rng_algorithm {DEFAULT,THREE_FRY,PHILOX}>",
    "#stablehlo<rng_distribution {UNIFORM,NORMAL}>",
    "#stablehlo<transpose {NO_TRANSPOSE,TRANSPOSE,ADJOINT}>",
    "#stablehlo.result_accuracy_mode<{DEFAULT,HIGHEST,TOLERANCE}>",
    "#chlo<comparison_direction {EQ,NE,GE,GT,LE,LT}>",
    "#chlo<comparison_type {NOTYPE,FLOAT,TOTALORDER,SIGNED,UNSIGNED}>",
    "#chlo<precision {DEFAULT,HIGH,HIGHEST}>",
)


class Drawing:
    """Draws attributes and types, as text."""

    def __init__(self, seed: int | str) -> None:
        self.random = random.Random(seed)

    def one_of(self, choices: Sequence[Callable[[int], str]], depth: int) -> str:
        return self.random.choice(choices)(depth)

    def numbers(self, most: int = 4, last: int = 9) -> str:
        return ", ".join(str(self.random.randint(0, last)) for _ in range(self.random.randint(0, most)))

    def attribute(self, depth: int = 0) -> str:
        leaves = [self.number, self.text, self.dense, self.array, self.symbol, self.enum, self.dimensions, self.map]
        nested = [self.type, self.dictionary, self.list, self.distinct, self.location, self.list, self.type]
        return self.one_of(leaves if depth > 3 else [*leaves, *nested, *nested], depth)

    def type(self, depth: int = 0) -> str:
        scalars = [self.integer, self.float, self.other_scalar]
        nested = [self.tensor, self.tensor, self.vector, self.memref, self.tuple, self.function, self.quantized]
        return self.one_of(scalars if depth > 3 else [*scalars, *nested], depth)

    # Types

    def integer(self, _: int) -> str:
        width = self.random.choice((1, 2, 4, 8, 16, 32, 64, 65, 128, 300, 4096))
        return f"{self.random.choice(('i', 'i', 'ui', 'si'))}{width}"

    def float(self, _: int) -> str:
        return self.random.choice((*FLOATS, *FLOATS[:4], *FLOATS_OF_FEW_BITS))

    def other_scalar(self, depth: int) -> str:
        future = f"!stablehlo.future<tensor<2x{self.element(depth)}>>"
        complex_ = f"complex<{self.random.choice(('f32', 'f64', 'bf16', 'i32'))}>"
        return self.random.choice(("index", "none", complex_, complex_, "!stablehlo.token", future))

    def element(self, depth: int) -> str:
        return self.one_of([self.integer, self.float], depth)

    def shape(self, most: int = 4) -> str:
        return "".join(f"{self.random.choice(('?', 1, 2, 200, 70000))}x" for _ in range(self.random.randint(0, most)))

    def tensor(self, depth: int) -> str:
        element = self.one_of([self.element, self.element, self.quantized], depth)
        encoding = self.random.choice(("", "", "", ", #stablehlo.bounds<4>", f", {self.attribute(depth + 1)}"))
        shape = "?x" if "bounds" in encoding else self.shape()
        return self.random.choice((f"tensor<{shape}{element}{encoding}>", f"tensor<*x{element}>"))

    def vector(self, depth: int) -> str:
        sizes = [self.random.choice(("2x", "[4]x", "1x")) for _ in range(self.random.randint(1, 3))]
        return f"vector<{''.join(sizes)}{self.element(depth)}>"

    def memref(self, depth: int) -> str:
        layout = self.random.choice(("", "", ", strided<[1], offset: ?>", ", affine_map<(d0) -> (d0 * 2)>"))
        space = self.random.choice(("", "", ", 1", ', "x"'))
        return f"memref<2x{self.element(depth)}{layout}{space}>"

    def tuple(self, depth: int) -> str:
        return f"tuple<{', '.join(self.type(depth + 1) for _ in range(self.random.randint(0, 3)))}>"

    def function(self, depth: int) -> str:
        return f"({self.type(depth + 1)}) -> ({self.type(depth + 1)})"

    def quantized(self, _: int) -> str:
        return self.random.choice(
            (
                "!quant.uniform<i8:f32, 0.5>",
                "!quant.uniform<u8<0:254>:f32, 0.5:3>",
                "!quant.uniform<i4:f32:1, {0.5, 2.0:1}>",
                "!quant.uniform<i8:f32:{0:1, 1:1}, {{0.5, 2.0}, {3.0, 4.0}}>",
                "!quant.any<i8:f32>",
                "!quant.any<i8>",
                "!quant.calibrated<f32<-1.0:1.0>>",
            )
        )

    # Attributes

    def number(self, depth: int) -> str:
        if self.random.random() < 0.3:
            return self.random.choice(("true", "unit", f"1.5 : {self.random.choice(FLOATS)}", "7 : index"))
        kind = self.integer(depth)
        return f"{'true' if kind == 'i1' else '1'}{'' if kind == 'i1' else f' : {kind}'}"

    def text(self, depth: int) -> str:
        text = json.dumps(
            "".join(self.random.choices("ab é#\x7f", k=self.random.choice((0, 3, 200)))), ensure_ascii=False
        )
        return text if self.random.random() < 0.6 else f"{text} : {self.element(depth)}"

    def symbol(self, _: int) -> str:
        return "::".join(f"@s{self.random.randint(0, 3)}" for _ in range(self.random.randint(1, 4)))

    def dense(self, _: int) -> str:
        count = self.random.choice((1, 2, 300))
        elements = ", ".join(self.random.choice("01") for _ in range(count))
        floats = ", ".join(self.random.choice(("0.0", "1.0", "2.0")) for _ in range(count))
        return self.random.choice(
            (
                f"dense<[{elements}]> : tensor<{count}x{self.random.choice(('i4', 'i8', 'ui16', 'i64', 'index'))}>",
                f"dense<[{floats}]> : tensor<{count}x{self.random.choice(FLOATS)}>",
                f"dense<1> : tensor<{self.random.choice((3, 70000))}xi32>",
                f"dense<[{floats}]> : vector<{count}xf32>",
                'dense<["a", "b"]> : tensor<2x!stablehlo.token>',
                "dense<(1.0, 2.0)> : tensor<2xcomplex<f32>>",
                "sparse<[[0]], [1]> : tensor<2xi32>",
                "dense<[true, false]> : tensor<2xi1>",
            )
        )

    def array(self, _: int) -> str:
        kind = self.random.choice(("i8", "i16", "i32", "i64"))
        return self.random.choice((f"array<{kind}: {self.numbers(300)}>", "array<f32: 1.0>", "array<i1: true>"))

    def enum(self, _: int) -> str:
        before, rest = self.random.choice(ENUMS).split("{")
        cases, after = rest.split("}")
        return f"{before}{self.random.choice(cases.split(','))}{after}"

    def dimensions(self, depth: int) -> str:
        element = self.random.choice(("f32", "bf16", "tf32", "f8E4M3FN"))
        return self.random.choice(
            (
                f"#stablehlo.channel_handle<handle = {self.random.choice((0, 1, 300))}, type = 1>",
                "#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>",
                f"#stablehlo.dot<lhs_contracting_dimensions = [{self.numbers()}], rhs_contracting_dimensions = [0]>",
                f"#stablehlo.gather<offset_dims = [{self.numbers()}], start_index_map = [{self.numbers()}]>",
                f"#stablehlo.scatter<update_window_dims = [{self.numbers()}], scatter_dims_to_operand_dims = [0]>",
                "#stablehlo.gather<operand_batching_dims = [1], start_indices_batching_dims = [0]>",
                f"#stablehlo.bounds<{self.random.choice(('?', 3, '3, ?, 70000'))}>",
                "#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 1, "
                "operand_tuple_indices = []>",
                f"#stablehlo.dot_algorithm<lhs_precision_type = {element}, rhs_precision_type = {element}, "
                "accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, "
                "num_primitive_operations = 1, allow_imprecise_accumulation = false>",
                "#stablehlo.result_accuracy<atol = 0.5, rtol = 0.0, ulps = 1, "
                "mode = #stablehlo.result_accuracy_mode<TOLERANCE>>",
                "#chlo.ragged_dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], "
                "lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0], lhs_ragged_dimensions = [1], "
                "rhs_group_dimensions = [0]>",
                '#sdy.mesh<["x"=2]>',
                '#sdy.sharding<@m, [{"x"}, {?}]>',
            )
        )

    def map(self, _: int) -> str:
        return self.random.choice(
            ("affine_map<(d0, d1)[s0] -> (d1 + s0, d0 floordiv 2)>", "affine_set<(d0) : (d0 >= 0)>", "strided<[1, 2]>")
        )

    def dictionary(self, depth: int) -> str:
        inner = (f"k{number} = {self.attribute(depth + 1)}" for number in range(self.random.choice((0, 1, 2, 2, 20))))
        return f"{{{', '.join(inner)}}}"

    def list(self, depth: int) -> str:
        count = self.random.choice((0, 1, 2, 3))
        return f"[{', '.join(self.attribute(depth + 1) for _ in range(count))}]"

    def distinct(self, depth: int) -> str:
        return f"distinct[{self.random.randint(0, 3)}]<{self.attribute(depth + 1)}>"

    def location(self, _: int) -> str:
        return self.random.choice(
            ('loc("f.py":1:2)', "loc(unknown)", 'loc(callsite("f" at "g"))', 'loc(fused["a", "b"])')
        )


def drawn(seed: int, number: int, targets: Sequence[str]) -> Iterator[tuple[str, vt.Artifact]]:
    """Yield the text of attributes and a program with each, for one of the targets in turn."""
    made = tried = 0
    while made < number:
        text = Drawing(f"{seed} {tried}").attribute()
        target = targets[tried % len(targets)]
        tried += 1
        try:
            yield (
                text,
                vt.serialize(
                    f"module attributes {{t.x = {text}}} {{ func.func @main() {{ return }} }}",
                    target,
                    allow_other_dialects=True,
                ),
            )
        except vt.VhloToolsError:
            continue  # the installed library does not know it, or its types do not go together
        made += 1
    print(f"{made} attributes, of {tried} drawn")


def wrong_answers(programs: Sequence[tuple[str, vt.Artifact]], release: str) -> tuple[Counter[str], list[str]]:
    """Return the number of programs read and refused, and what is not as the specification says."""
    target = vt.resolve_target(release)
    # jaxlib 0.8.3 never ends on some of what it cannot read: entries nested as deep as it reads at once.
    outcomes = read_by(release, [bytes(artifact) for _, artifact in programs], text=False, timeout=10)
    counts, wrong = Counter[str](), []
    for (text, artifact), outcome in zip(programs, outcomes, strict=True):
        found = [
            *artifact.requirements().reader_findings(target.version),
            *nesting_findings(artifact.file, target.consumers, ""),
        ]
        errors = [each for each in found if each.level == "error"]
        said = outcome.get("error")
        counts["refused" if said else "read"] += 1
        if (said is None) == bool(errors):
            wrong.append(f"{text[:200]}: {errors[0].message if errors else f'read, they say; {said}'}")
    return counts, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--release", action="append", help="of jaxlib; by default six of them")
    arguments = parser.parse_args()
    releases = [f"jaxlib=={each}" for each in arguments.release or RELEASES]
    programs = list(drawn(arguments.seed, arguments.number, releases))
    failed = False
    for release in releases:
        counts, wrong = wrong_answers(programs, release)
        print(f"{release}: {counts['read']} read, {counts['refused']} refused, {len(wrong)} not as said", flush=True)
        for each in wrong[:20]:
            print(f"  {each}")
        failed = failed or bool(wrong)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
