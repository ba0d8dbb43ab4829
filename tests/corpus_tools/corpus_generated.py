"""Programs of the corpus that are easier to generate than to write: one for each element type, and large ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

INTEGERS = {f"{sign}i{width}": width for sign in ("", "u") for width in (2, 4, 8, 16, 32, 64)}
FLOATS = (
    *("f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f8E5M2FNUZ", "f8E4M3B11FNUZ", "f8E4M3", "f8E3M4", "f8E8M0FNU"),
    *("f4E2M1FN", "f6E2M3FN", "f6E3M2FN", "bf16", "f16", "f32", "f64"),
)
QUANTIZED = (("i8", "f32"), ("u8", "f32"), ("i16", "f32"), ("i32", "f64"), ("i4", "f16"), ("u16", "bf16"))
SHAPES = ("", "0x", "1x1x1x1x1x1x1x", "?x3x?x", "2147483648x", "4x0x?x")
F32 = "tensor<f32>"
BINARY = f"({F32}, {F32}) -> {F32}"


def function(head: str, lines: Sequence[str]) -> str:
    """Return a function."""
    body = "".join(f"  {line}\n" for line in lines)
    return f"func.func {head} {{\n{body}}}\n"


def element_types() -> Iterator[tuple[str, str]]:
    """Return programs that take, return and hold as constants one type of element each."""
    yield "i1", constants("i1", "true", ["true", "false", "true", "true"])
    yield (
        "i1_nine",
        constants("i1", "false", ["true", "false", "true", "true", "false", "true", "false", "false", "true"]),
    )
    for name in ("index", "tf32"):  # of which there are no constants
        yield name, signature(name)
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
    for storage, expressed in QUANTIZED:
        yield f"quant_{storage}_{expressed}", signature(f"!quant.uniform<{storage}:{expressed}, 2.5e-01:3>")
    for dimensions in SHAPES:
        yield f"shape_{dimensions.replace('?', 'd') or 'scalar'}", signature("i8", dimensions)


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
    lines = [
        f'%{index} = "stablehlo.constant"() {{value = dense<{value}> : {tensor}}} : () -> {tensor}'
        for index, (value, tensor) in enumerate((value, f"tensor<{shape}{kind}>") for shape, value in forms)
    ]
    types = f"tensor<4x{kind}>, tensor<{kind}>"
    return function(f"@main(%x: tensor<4x{kind}>) -> ({types})", [*lines, f"return %x, %0 : {types}"])


def signature(kind: str, dimensions: str = "4x") -> str:
    """Return a program that hands its argument on."""
    tensor = f"tensor<{dimensions}{kind}>"
    return function(f"@main(%x: {tensor}) -> {tensor}", [f"return %x : {tensor}"])


def large_programs() -> Iterator[tuple[str, str]]:
    """Return programs with much of something."""
    for count in (64, 300):
        yield f"arguments_{count}", many_arguments(count)
    for count in (40, 2000):
        yield f"ops_{count}", many_ops(count)
    yield "uses", uses()
    yield "uses_of_one", uses_of_one()
    yield "uses_across_regions", uses_across_regions()
    yield "deep", deep(24)
    yield "functions_60", many_functions(60)
    values = ", ".join(f"{i}.25" for i in range(600))
    constant = f'%0 = "stablehlo.constant"() {{value = dense<[{values}]> : tensor<600xf32>}} : () -> tensor<600xf32>'
    yield "constant_600", function("@main() -> tensor<600xf32>", [constant, "return %0 : tensor<600xf32>"])
    attributes = f'call_target_name = "k", backend_config = "{"x" * 3000}"'
    call = f'%0 = "stablehlo.custom_call"(%x) {{{attributes}}} : ({F32}) -> {F32}'
    yield "long_string", function(f"@main(%x: {F32}) -> {F32}", [call, f"return %0 : {F32}"])


def many_arguments(count: int) -> str:
    """Return a function that returns its arguments in the opposite order."""
    arguments = ", ".join(f"%a{i}: {F32}" for i in range(count))
    returned = ", ".join(f"%a{i}" for i in reversed(range(count)))
    types = ", ".join([F32] * count)
    return function(f"@main({arguments}) -> ({types})", [f"return {returned} : {types}"])


def many_ops(count: int) -> str:
    """Return a long function in which each op uses older ones."""

    def operands(index: int) -> str:
        other = index * 7 % index if index % 5 else index // 2
        return f"%{index - 1}, %{other}"

    names = ("add", "multiply", "subtract")
    first = f'%0 = "stablehlo.add"(%x, %y) : {BINARY}'
    lines = [f'%{i} = "stablehlo.{names[i % 3]}"({operands(i)}) : {BINARY}' for i in range(1, count)]
    return function(f"@main(%x: {F32}, %y: {F32}) -> {F32}", [first, *lines, f"return %{count - 1} : {F32}"])


def uses() -> str:
    """Return a function whose ops all use the same values, so that any two may be exchanged."""
    lines = [f'%{i} = "stablehlo.{op}"(%x, %y) : {BINARY}' for i, op in enumerate(("add", "multiply", "power") * 2)]
    return function(f"@main(%x: {F32}, %y: {F32}) -> ({F32}, {F32})", [*lines, f"return %0, %5 : {F32}, {F32}"])


def uses_of_one() -> str:
    """Return a function with a value of many uses, of which few can be exchanged."""
    lines = [f'%{name} = "stablehlo.{op}"(%x) : ({F32}) -> {F32}' for name, op in (("t", "cosine"), ("s", "sine"))]
    lines += [f'%{i} = "stablehlo.{op}"(%s, %s) : {BINARY}' for i, op in enumerate(("power", "multiply"))]
    lines += [f'%{i} = "stablehlo.add"(%{i - 1}, %s) : {BINARY}' for i in range(2, 16)]
    return function(f"@main(%x: {F32}) -> {F32}", [*lines, f"return %15 : {F32}"])


def uses_across_regions() -> str:
    """Return a program whose regions use values from outside, several times each."""
    branch = f"""{{
    %1 = "stablehlo.add"(%s, %x) : {BINARY}
    %2 = "stablehlo.add"(%x, %s) : {BINARY}
    %3 = "stablehlo.multiply"(%1, %2) : {BINARY}
    "stablehlo.return"(%3, %s, %s) : ({F32}, {F32}, {F32}) -> ()
  }}"""
    lines = [
        f'%s = "stablehlo.sine"(%x) : ({F32}) -> {F32}',
        f'%0:3 = "stablehlo.if"(%p) ({branch}, {branch}) : (tensor<i1>) -> ({F32}, {F32}, {F32})',
        f'%4:3 = "stablehlo.case"(%i) ({branch}, {branch}, {branch}) : (tensor<i32>) -> ({F32}, {F32}, {F32})',
        f'%5 = "stablehlo.add"(%4#2, %4#1) : {BINARY}',
        f'%6 = "stablehlo.add"(%4#1, %4#2) : {BINARY}',
        f'%7 = "stablehlo.add"(%4#2, %4#2) : {BINARY}',
        f'%8 = "stablehlo.add"(%s, %0#1) : {BINARY}',
        f'%9 = "stablehlo.add"(%7, %8) : {BINARY}',
        f"return %9 : {F32}",
    ]
    return function(f"@main(%p: tensor<i1>, %i: tensor<i32>, %x: {F32}) -> {F32}", lines)


def deep(levels: int) -> str:
    """Return a program with regions in regions."""
    inner = f'"stablehlo.return"(%x) : ({F32}) -> ()'
    body = inner
    for level in range(levels):
        choice = f'%r{level} = "stablehlo.if"(%p) ({{\n{body}\n}}, {{\n{inner}\n}}) : (tensor<i1>) -> {F32}'
        body = f'{choice}\n"stablehlo.return"(%r{level}) : ({F32}) -> ()'
    return function(f"@main(%p: tensor<i1>, %x: {F32}) -> {F32}", [choice, f"return %r{levels - 1} : {F32}"])


def many_functions(count: int) -> str:
    """Return a program with many functions, each calling the next."""
    names = ["@main", *(f"private @f{i}" for i in range(1, count))]
    texts = [
        function(
            f"{name}(%x: {F32}) -> {F32}", [f"%0 = func.call @f{i + 1}(%x) : ({F32}) -> {F32}", f"return %0 : {F32}"]
        )
        for i, name in enumerate(names[:-1])
    ]
    return "".join([*texts, function(f"{names[-1]}(%x: {F32}) -> {F32}", [f"return %x : {F32}"])])
