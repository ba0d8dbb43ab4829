"""Check that modules of HLO of any signature can be read, with their aliases and donors: `check_hlo.py`.

Draws modules with up to 64 parameters and 64 results: arrays of all element types, of dynamic sizes and with layouts,
tokens, tuples nested four deep, empty ones and ones of a single element among them; with aliases, must-aliases and
donors on any of their leaves. Each goes in as text as drawn, as XLA prints it, and as a protocol buffer, is serialized
at several versions, and comes back as HLO. What XLA prints of each is compared with what was drawn: tuples apart, as
XLA takes them apart on the way to StableHLO. Prints each difference, and counts of what was drawn.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from random import Random
from typing import Final

import vhlo_tools as vt
from vhlo_tools import api
from vhlo_tools.artifact import inspect_bytes
from vhlo_tools.bindings.xla import hlo_of_text, text_of_hlo

BATCH: Final = 20
MOST: Final = 64
DEEPEST: Final = 4
VERSIONS: Final = ("0.9.0", "1.0.0", "current")
#: Small enough that the same shapes come again, which aliases need.
SHAPES: Final = (
    *("f32[2]", "f32[2]", "f32[]", "s32[3,2]", "s32[3,2]{0,1}", "f32[2]{0:T(8)S(5)}", "f32[0]"),
    *("f32[4,3,2]{0,2,1:T(2,2)}", "pred[4]", "bf16[2,2]", "f16[1]", "f64[2]", "c64[2]", "c128[1]", "u8[3]", "s8[3]"),
    *("s16[2]", "u16[2]", "u32[2]", "u64[2]", "s64[2]", "s4[4]", "u4[4]{0:E(4)}", "f8e4m3fn[2]", "f8e5m2[2]"),
    *("f32[<=5]", "s32[<=4,2]"),
)
#: An array, a token, or a tuple.
Drawn = str | tuple["Drawn", ...]
Leaf = tuple[tuple[int, ...], str]
#: Output leaf, parameter, leaf of it, and kind; of a donor, parameter and leaf.
Alias = tuple[tuple[int, ...], int, tuple[int, ...], str]
Donor = tuple[int, tuple[int, ...]]

_ALIAS: Final = re.compile(r"\{([\d, ]*)\}: \((\d+), \{([\d, ]*)\}, (may-alias|must-alias)\)")
_DONOR: Final = re.compile(r"\((\d+), \{([\d, ]*)\}\)")


@dataclass(frozen=True, slots=True)
class DrawnModule:
    """A module of HLO."""

    parameters: tuple[Drawn, ...]  # the shapes of its parameters
    result: Drawn  # the shape of its result
    aliases: tuple[Alias, ...]  # its aliases
    donors: tuple[Donor, ...]  # its donors
    short: bool  # whether its aliases are written in the short form of XLA's documentation, where that can be


@dataclass(slots=True)
class Outcome:
    """The outcome of some modules."""

    seen: Counter[str] = field(default_factory=Counter)  # counts of what was drawn
    wrong: list[str] = field(default_factory=list)  # a sentence for each difference


def draw_module(seed: int) -> DrawnModule:
    random = Random(seed)
    # So few of them that aliases are found.
    palette = random.choices(SHAPES, k=random.randint(1, 4))
    number = random.choice((0, 1, 1, 2, 3, 5, 6, 7, 8, random.randint(9, MOST)))
    parameters = tuple(draw_shape(random, palette, 0, tokens=False) for _ in range(number))
    outputs = random.choice((0, 1, 1, 2, 3, 5, 6, 7, 8, random.randint(9, MOST)))
    whole = outputs == 1 and random.random() < 0.5
    elements = tuple(draw_shape(random, palette, 1, tokens=True) for _ in range(outputs))
    result = elements[0] if whole else elements
    inputs = [(at, *leaf) for at, shape in enumerate(parameters) for leaf in leaves(shape)]
    random.shuffle(inputs)
    aliases: list[Alias] = []
    for index, shape in leaves(result):
        fitting = [each for each in inputs if each[2] == shape]
        if fitting and random.random() < 0.5:
            at, place, _ = fitting[0]
            inputs.remove(fitting[0])
            aliases.append((index, at, place, random.choice(("may-alias", "may-alias", "must-alias"))))
    donors = tuple((at, place) for at, place, _ in inputs if random.random() < 0.2)
    return DrawnModule(parameters, result, tuple(aliases), donors, random.random() < 0.3)


def draw_shape(random: Random, palette: Sequence[str], depth: int, *, tokens: bool) -> Drawn:
    """Return a random shape: seldom a tuple, and seldom a token."""
    if depth < DEEPEST and random.random() < 0.2:
        return tuple(draw_shape(random, palette, depth + 1, tokens=tokens) for _ in range(random.choice((0, 1, 2, 3))))
    return "token[]" if tokens and random.random() < 0.03 else random.choice(palette)


def leaves(shape: Drawn, index: tuple[int, ...] = ()) -> Iterator[Leaf]:
    """Yield the leaves of a shape that are arrays or tokens, with their indices."""
    if isinstance(shape, str):
        yield index, shape
        return
    for at, element in enumerate(shape):
        yield from leaves(element, (*index, at))


def text_of(module: DrawnModule) -> str:
    """Return a module as HLO text; values of the result that no parameter has the shape of are made of constants."""
    lines: list[str] = []
    found: dict[str, str] = {}
    fresh = (f"v{number}" for number in range(1 << 20))

    def add(shape: Drawn, operation: str, *, root: bool = False) -> str:
        name = next(fresh)
        lines.append(f"  {'ROOT ' if root else ''}{name} = {shape_text(shape)} {operation}")
        return name

    def unpack(value: str, shape: Drawn) -> None:
        if isinstance(shape, str):
            found.setdefault(shape, value)
            return
        for at, element in enumerate(shape):
            unpack(add(element, f"get-tuple-element({value}), index={at}"), element)

    def build(shape: Drawn, *, root: bool = False) -> str:
        if isinstance(shape, str):
            if shape in found and not root:
                return found[shape]
            if shape in found:
                return add(shape, f"copy({found[shape]})", root=True)
            return constant(shape, root=root)
        operands = [build(element) for element in shape]
        return add(shape, f"tuple({', '.join(operands)})", root=root)

    def constant(shape: str, *, root: bool) -> str:
        if shape == "token[]":
            return add(shape, "after-all()", root=root)
        element, _, sizes = shape.partition("[")
        dynamic = "<=" in sizes
        static = shape.replace("<=", "")
        value = "(0, 0)" if element[0] == "c" else "false" if element == "pred" else "0"
        scalar = add(f"{element}[]", f"constant({value})")
        whole = add(static, f"broadcast({scalar}), dimensions={{}}", root=root and not dynamic)
        if not dynamic:
            return whole
        size = add("s32[]", "constant(1)")
        return add(shape, f"set-dimension-size({whole}, {size}), dimensions={{0}}", root=root)

    for number, shape in enumerate(module.parameters):
        unpack(add(shape, f"parameter({number})"), shape)
    build(module.result, root=True)
    return f"HloModule drawn{attributes_text(module)}\n\nENTRY entry {{\n" + "\n".join(lines) + "\n}\n"


def attributes_text(module: DrawnModule) -> str:
    """Return the aliases and donors of a module as its header has them."""
    text = ""
    if module.aliases:
        entries = ", ".join(alias_text(*each, short=module.short) for each in module.aliases)
        text += f", input_output_alias={{ {entries} }}"
    if module.donors:
        text += f", buffer_donor={{ {', '.join(f'({number}, {index_text(at)})' for number, at in module.donors)} }}"
    return text


def alias_text(output: tuple[int, ...], number: int, index: tuple[int, ...], kind: str, *, short: bool) -> str:
    """Return an alias as text; the short form is for may-aliases of whole parameters."""
    if short and not index and kind == "may-alias":
        return f"{index_text(output)}: {number}"
    return f"{index_text(output)}: ({number}, {index_text(index)}, {kind})"


def index_text(index: tuple[int, ...]) -> str:
    return f"{{{', '.join(map(str, index))}}}"


def shape_text(shape: Drawn) -> str:
    return shape if isinstance(shape, str) else f"({', '.join(map(shape_text, shape))})"


def plain_text(shape: Drawn) -> str:
    return re.sub(r"\{[^}]*\}", "", shape_text(shape))


def flat(module: DrawnModule) -> tuple[list[Alias], list[Donor]]:
    """Return the aliases and donors of a module when its tuples are taken apart."""
    inputs = [(number, index) for number, shape in enumerate(module.parameters) for index, _ in leaves(shape)]
    outputs = [index for index, _ in leaves(module.result)]
    argument = {each: position for position, each in enumerate(inputs)}
    output = {each: (position,) if len(outputs) > 1 else () for position, each in enumerate(outputs)}
    return (
        sorted((output[out], argument[number, index], (), kind) for out, number, index, kind in module.aliases),
        sorted((argument[each], ()) for each in module.donors),
    )


def printed(text: str) -> tuple[list[Alias], list[Donor]]:
    """Return the aliases and donors in the header that XLA prints."""
    line = text.partition("\n")[0]
    aliases = re.search(r" input_output_alias=\{(.*?\)) \}", line)
    donors = re.search(r" buffer_donor=\{(.*?\)) \}", line)
    return (
        sorted(
            (numbers(each[1]), int(each[2]), numbers(each[3]), each[4])
            for each in _ALIAS.finditer(aliases[1] if aliases else "")
        ),
        sorted((int(each[1]), numbers(each[2])) for each in _DONOR.finditer(donors[1] if donors else "")),
    )


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(each) for each in text.split(",") if each.strip())


def differences(module: DrawnModule) -> Iterator[str]:
    text = text_of(module)
    # XLA's parser knows the long form of aliases only.
    proto = hlo_of_text(text_of(DrawnModule(module.parameters, module.result, module.aliases, module.donors, False)))
    xla = text_of_hlo(proto)
    drawn = sorted(module.aliases), sorted(module.donors)
    if printed(xla) != drawn:
        yield f"XLA prints {printed(xla)}, drawn was {drawn}"
    for form, data in (("text as drawn", text.encode()), ("text of XLA", xla.encode()), ("proto", proto)):
        described = inspect_bytes(data, form)
        shapes = [plain_text(each) for each in (*module.parameters, module.result)]
        if [*described["parameters"], described["result"]] != shapes:
            yield f"inspect of {form} has {described['parameters']} and {described['result']}, drawn was {shapes}"
        listed = sorted(
            (tuple(each["output_index"]), each["parameter_number"], tuple(each["parameter_index"]), each["kind"])
            for each in described["aliases"]
        )
        donated = sorted((each["parameter_number"], tuple(each["parameter_index"])) for each in described["donors"])
        if (listed, donated) != drawn:
            yield f"inspect of {form} has {listed}, {donated}, drawn was {drawn}"
    wanted = flat(module)
    for form, source in (("text as drawn", text), ("text of XLA", xla), ("proto", proto)):
        for version in VERSIONS:
            try:
                artifact = vt.serialize(source, version, trusted=True)
            except vt.UnsupportedFeatureError as error:
                yield f"{form} at {version}: {error}"
                continue
            back = printed(text_of_hlo(api.program_of(artifact, "hlo-proto")))
            if back != wanted:
                yield f"{form} at {version} came back with {back}, expected {wanted}"


def check(seeds: Sequence[int]) -> Outcome:
    """Check the modules of some seeds."""
    outcome = Outcome()
    for seed in seeds:
        module = draw_module(seed)
        inputs = [each for shape in module.parameters for each in leaves(shape)]
        outcome.seen["modules"] += 1
        outcome.seen["of more than five parameters"] += len(module.parameters) > 5
        outcome.seen["of more than five results"] += not isinstance(module.result, str) and len(module.result) > 5
        outcome.seen["with tuples among parameters"] += any(not isinstance(each, str) for each in module.parameters)
        outcome.seen["with empty tuples"] += "()" in shape_text((*module.parameters, module.result, "x"))
        outcome.seen["leaves"] += len(inputs)
        outcome.seen["aliases"] += len(module.aliases)
        outcome.seen["must-aliases"] += sum(each[3] == "must-alias" for each in module.aliases)
        outcome.seen["aliases of nested leaves"] += sum(len(each[0]) > 1 or bool(each[2]) for each in module.aliases)
        outcome.seen["donors"] += len(module.donors)
        try:
            outcome.wrong += [f"seed {seed}: {each}" for each in differences(module)]
        except Exception as error:  # whatever it is, it is a difference
            outcome.wrong.append(f"seed {seed}: {type(error).__name__}: {error}")
    return outcome


def main() -> int:
    """Check as many modules as are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--number", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    seeds = range(arguments.first, arguments.first + arguments.number)
    batches = [seeds[at : at + BATCH] for at in range(0, len(seeds), BATCH)]
    total = Outcome()
    with ProcessPoolExecutor(arguments.processes, get_context("spawn")) as pool:
        for outcome in pool.map(partial(check), batches):
            total.seen += outcome.seen
            total.wrong += outcome.wrong
            for each in outcome.wrong:
                print(each[:400], flush=True)
    print(", ".join(f"{number} {what}" for what, number in total.seen.items()))
    print(f"{len(total.wrong)} differences")
    return 1 if total.wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
