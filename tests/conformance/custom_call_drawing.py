"""Custom calls drawn at random: right ones, right ones with one change, and any calls at all."""

from __future__ import annotations

import string
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any, Final

from custom_call_programs import DrawnCall, Tensor
from custom_call_targets import UNKNOWN

from vhlo_tools.execution import RULES
from vhlo_tools.execution.call_rules import (
    Bindings,
    FrontendAttribute,
    MhloOp,
    Pattern,
    Rule,
    Signature,
    TextConfiguration,
    TypedConfiguration,
)
from vhlo_tools.execution.known_targets import ApproxTopK

ELEMENTS: Final = (
    *("i1", "i2", "i4", "i8", "i16", "i32", "i64", "ui2", "ui4", "ui8", "ui16", "ui32", "ui64"),
    *("f16", "bf16", "f32", "f64", "complex<f32>", "complex<f64>", "f4E2M1FN", "f6E2M3FN", "f6E3M2FN", "f8E3M4"),
    *("f8E4M3", "f8E4M3B11FNUZ", "f8E4M3FN", "f8E4M3FNUZ", "f8E5M2", "f8E5M2FNUZ", "f8E8M0FNU"),
)
KNOWN: Final = tuple(sorted(RULES))
#: The most elements of a tensor, so that a call takes no longer than a second.
MOST: Final = 1 << 17
#: Where a call stands.
PLACES: Final = ("main", "main", "main", "main", "function", "composite", "branch", "twice")

_RELATED: Final = {"real": {"complex<f32>": "f32", "complex<f64>": "f64"}, "complex": {"f32": "complex<f32>"}}
_RELATED["complex"]["f64"] = "complex<f64>"


def draw_call(seed: int) -> DrawnCall:
    random = Random(seed)
    how = random.choices(("right", "changed", "any"), (4, 4, 3))[0]
    if how == "any":
        return _any_call(random)
    call = _right_call(random, random.choice(KNOWN))
    tupled = random.random() < 0.1 and getattr(RULES[call.target], "may_be_tuple", False)
    if how == "changed":
        tupled = random.random() < 0.1
        for _ in range(random.choice((1, 1, 1, 2))):
            call = random.choice(_CHANGES)(random, call)
        call = replace(call, how="changed")
    return replace(call, place=random.choice(PLACES), tupled=tupled and bool(call.results))


def _size(random: Random) -> int:
    return random.choice((0, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 8, 13, 16, 30, 64, random.randint(0, 300)))


def _any_call(random: Random) -> DrawnCall:
    """Return a call of any target with any types and attributes."""
    name = "".join(random.choices(string.ascii_letters + "_.$", k=random.randint(1, 12)))
    target = random.choice((random.choice(UNKNOWN), random.choice(UNKNOWN), random.choice(KNOWN), name))
    attributes = {
        "api_version": f"{random.choice((0, 1, 2, 3, 4))} : i32",
        "backend_config": random.choice(
            ('""', '"1,1,100,1e-6"', '"x"', "{}", "{uplo = 76 : ui8}", "{index = 0 : ui64}")
        ),
        "mhlo.backend_config": random.choice(("{}", "{k = 3 : i64}", "{uplo = 76 : ui8, mode = 86 : ui8}", '"x"')),
        "mhlo.attributes": random.choice(("{}", "{k = 3 : i64}")),
        "mhlo.version": "1 : i64",
        "has_side_effect": random.choice(("true", "false")),
        "called_computations": "[@computation]",
        "mhlo.frontend_attributes": '{xla.sdy.sharding = "#sdy.sharding_per_value<[<@m, [{}]>]>"}',
    }
    kept = {name: each for name, each in attributes.items() if random.random() < 0.2}
    operands = tuple(_any_type(random) for _ in range(random.choice((0, 1, 1, 1, 2, 2, 3, 4, 5, 6))))
    results = tuple(_any_type(random) for _ in range(random.choice((0, 1, 1, 1, 2, 2, 3, 4, 5))))
    if operands and random.random() < 0.4:
        results = tuple(random.choice(operands) for _ in range(random.randint(1, 3)))
    return DrawnCall(target, operands, results, kept, "any", "main", bool(results) and random.random() < 0.1)


def _any_type(random: Random) -> Tensor | str:
    if random.random() < 0.03:
        return "!stablehlo.token"
    element = random.choice((*ELEMENTS, "f32", "f32", "f32", "f32"))
    rank = random.randint(0, 5)
    while True:
        tensor = Tensor(element, tuple(_size(random) for _ in range(rank)))
        if _elements(tensor) <= MOST:
            return tensor


def _elements(tensor: Tensor) -> int:
    product = 1
    for size in tensor.shape:
        product *= size
    return product


def _right_call(random: Random, target: str) -> DrawnCall:
    """Return a call that its rule accepts, with sizes that satisfy all conditions."""
    rule = RULES[target]
    if isinstance(rule, ApproxTopK):
        return _approximate_call(random, target)
    while True:
        signature = random.choice(rule.signatures)
        element = random.choice(rule.elements or ELEMENTS)
        values = _values(random, rule)
        if any(values.get(name) not in allowed for name, allowed in signature.when.items()):
            continue
        texts = (*(signature.operands or ("T ~",) * random.randint(0, 4)), *signature.results)
        types = _types(random, texts, element, {k: v for k, v in values.items() if type(v) is int}, signature)
        if types and all(_elements(each) <= MOST for each in types):
            break
    count = len(texts) - len(signature.results)
    operands, results = types[:count], types[count:]
    if rule.ranks and not rule.ranks[0] <= len(operands[0].shape) <= rule.ranks[1]:
        return _right_call(random, target)
    attributes = _attributes(random, rule, values)
    if rule.column_major:
        for name, kinds, patterns in (
            ("operand_layouts", operands, signature.operands or ()),
            ("result_layouts", results, signature.results),
        ):
            orders = [_layout(kind, text) for kind, text in zip(kinds, patterns, strict=True)]
            attributes[name] = f"[{', '.join(orders)}]"
        chosen = [pair for pair in sorted(rule.aliases or ()) if random.random() < 0.5]
        if chosen:
            attributes["output_operand_aliases"] = _aliases(chosen, len(results))
    return DrawnCall(target, operands, results, attributes)


def _approximate_call(random: Random, target: str) -> DrawnCall:
    element, rank = random.choice(("f16", "bf16", "f32", "f64")), random.randint(1, 3)
    shape = tuple(max(1, _size(random) % 65) for _ in range(rank))
    axis = random.randrange(rank)
    k = random.randint(1, shape[axis])
    config = {
        "aggregate_to_topk": "true",
        "is_fallback": random.choice(("true", "false")),
        "recall_target": f"{random.choice((0.5, 0.95, 1.0))} : f32",
        "reduction_dim": f"{axis} : i64",
        "reduction_input_size_override": "-1 : i64",
        "top_k": f"{k} : i64",
    }
    given = (*shape[:axis], k, *shape[axis + 1 :])
    operands = (Tensor(element, shape), Tensor("i32", shape), Tensor(element, ()), Tensor("i32", ()))
    attributes = {
        "mhlo.backend_config": f"{{{', '.join(f'{name} = {value}' for name, value in config.items())}}}",
        "called_computations": f"[@{random.choice(('GT', 'LT'))}_{element}]",
    }
    return DrawnCall(target, operands, (Tensor(element, given), Tensor("i32", given)), attributes)


def _aliases(pairs: list[tuple[int, int]], results: int) -> str:
    texts = (
        f"#stablehlo.output_operand_alias<output_tuple_indices = [{result if results > 1 else ''}], "
        f"operand_index = {operand}, operand_tuple_indices = []>"
        for operand, result in pairs
    )
    return f"[{', '.join(texts)}]"


def _layout(tensor: Tensor, pattern: str) -> str:
    rank = len(tensor.shape)
    order = list(range(rank))[::-1]
    if Pattern.parse(pattern).is_matrix:
        order[:2] = order[1::-1]
    return f"dense<{order or ''}> : tensor<{rank}xindex>"


def _values(random: Random, rule: Rule) -> dict[str, Any]:
    entries = getattr(rule.configuration, "entries", {})
    values: dict[str, Any] = {}
    for name, kind in entries.items():
        if kind == "bool":
            values[name] = random.random() < 0.5
        else:
            values[name] = random.randint(1, 9) if kind in ("i32", "i64") else random.choice(kind)
    return values


def _types(
    random: Random, texts: tuple[str, ...], element: str, sizes: dict[str, int], signature: Signature
) -> tuple[Tensor, ...]:
    """Return types that match patterns; none if the conditions of the signature do not hold."""
    bindings = Bindings(element=element, sizes=dict(sizes))
    batch = tuple(random.choice((0, 1, 2, 3)) for _ in range(random.choice((0, 0, 0, 1, 1, 2, 3))))
    patterns = [Pattern.parse(text) for text in texts]
    names = {each for pattern in patterns for each in pattern.dimensions if each.isidentifier()}
    for name in sorted(names - sizes.keys()):  # in this order in every process
        bindings.sizes[name] = _size(random)
    if not all(bindings.holds(condition) for condition in signature.where):
        return ()
    types = []
    for pattern in patterns:
        kind = pattern.element if pattern.element not in ("T", "real", "complex") else element
        kind = _RELATED.get(pattern.element, {}).get(kind, kind)
        found = [bindings.size(each) for each in pattern.dimensions]
        if any(each is None or each < 0 for each in found):
            return ()
        leading = batch if pattern.leading == "*" else tuple(random.choice((1, 2, 3)) for _ in batch)
        types.append(Tensor(kind, ((*leading,) if pattern.leading else ()) + tuple(each or 0 for each in found)))
    return tuple(types)


def _attributes(random: Random, rule: Rule, values: dict[str, Any]) -> dict[str, str]:
    configuration = rule.configuration
    if isinstance(configuration, TypedConfiguration | MhloOp):
        text = ", ".join(f"{name} = {_entry(value, configuration.entries[name])}" for name, value in values.items())
        if isinstance(configuration, MhloOp):
            return {"mhlo.attributes": f"{{{text}}}", "mhlo.version": "1 : i64"}
        if random.random() < 0.3:
            return {"mhlo.backend_config": f"{{{text}}}"}
        return {"backend_config": f"{{{text}}}", "api_version": "4 : i32"}
    if isinstance(configuration, TextConfiguration) and configuration.is_optional:
        # That of TopK, as XLA of jaxlib 0.12 writes it.
        return random.choice([{}, {"backend_config": r'"{is_stable = true, order = \22TOTAL\22}"'}])
    if isinstance(configuration, TextConfiguration):
        return {"backend_config": f'"{random.choice("01")},{random.choice("01")},100,1e-6"'}
    if isinstance(configuration, FrontendAttribute):
        return {"mhlo.frontend_attributes": f'{{{configuration.name} = "#sdy.sharding_per_value<[<@m, [{{}}]>]>"}}'}
    return {"api_version": f"{random.choice((1, 2, 3))} : i32"} if random.random() < 0.5 else {}


def _entry(value: Any, kind: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value} : {kind}" if isinstance(value, int) else f"{ord(value)} : ui8"


# Changes of one thing


def _change_type(random: Random, call: DrawnCall) -> DrawnCall:
    where = "operands" if random.random() < 0.5 else "results"
    types = list(getattr(call, where))
    if not types:
        return replace(call, operands=(*call.operands, _any_type(random)))
    at = random.randrange(len(types))
    old = types[at]
    shape = list(old.shape) if isinstance(old, Tensor) else []
    element = old.element if isinstance(old, Tensor) else "f32"
    what = random.choice(("size", "size", "size", "rank", "rank", "element", "any"))
    if what == "size" and shape:
        axis = random.randrange(len(shape))
        shape[axis] = random.choice((max(0, shape[axis] - 1), shape[axis] + 1, 0, shape[axis] * 2, 3, 2**31))
    elif what == "rank":
        shape = shape[1:] if shape and random.random() < 0.5 else [random.choice((1, 2)), *shape]
    elif what == "element":
        element = random.choice(ELEMENTS)
    types[at] = _any_type(random) if what == "any" else Tensor(element, tuple(shape))
    return _with_layouts(_with_types(call, where, types))


def _change_number(random: Random, call: DrawnCall) -> DrawnCall:
    where = "operands" if random.random() < 0.5 else "results"
    types = list(getattr(call, where))
    if types and random.random() < 0.5:
        del types[random.randrange(len(types))]
    else:
        types.append(random.choice(types) if types else _any_type(random))
    if random.random() < 0.3:
        random.shuffle(types)
    return _with_layouts(_with_types(call, where, types))


def _with_types(call: DrawnCall, where: str, types: list[Tensor | str]) -> DrawnCall:
    return replace(call, operands=tuple(types)) if where == "operands" else replace(call, results=tuple(types))


def _with_layouts(call: DrawnCall) -> DrawnCall:
    """Return a call whose layouts fit its types again, since MLIR checks as much."""
    attributes = dict(call.attributes)
    for name, types in (("operand_layouts", call.operands), ("result_layouts", call.results)):
        if name in attributes:
            orders = [
                _layout(each, "T * m n" if len(each.shape) > 1 else "T *") for each in types if isinstance(each, Tensor)
            ]
            attributes[name] = f"[{', '.join(orders)}]"
    return replace(call, attributes=attributes)


def _change_attribute(random: Random, call: DrawnCall) -> DrawnCall:
    choices: list[dict[str, str | None]] = [
        {"api_version": f"{random.choice((0, 1, 2, 3, 4))} : i32"},
        {"backend_config": random.choice(('""', '"x"', '"1,1,0,1e-6"', '"2,0,100,nan"', '"0,1,100"', "{}"))},
        {"mhlo.backend_config": random.choice(("{}", "{uplo = 76 : ui8}", '"x"'))},
        {"called_computations": random.choice(("[@computation]", "[@EQ_f32]", "[@GT_f32]", "[@GT_f64, @GT_f64]"))},
        {"has_side_effect": "true"},
        {"operand_layouts": None, "result_layouts": None},
        {"mhlo.version": random.choice(("2 : i64", "-1 : i64"))},
    ]
    if call.results:  # MLIR itself crashes on aliases with nothing
        pair = random.randint(0, 2), random.randint(0, 1)
        choices.append({"output_operand_aliases": _aliases([pair], len(call.results))})
    for name in ("backend_config", "mhlo.backend_config", "mhlo.attributes"):
        text = call.attributes.get(name, "")
        if text.startswith("{") and "=" in text:
            first, _, rest = text[1:-1].partition(", ")
            key, _, value = first.partition(" = ")
            number = random.choice((0, 1, 78, 79, 83, 86, 255, 200))
            choices += [{name: f"{{{rest}}}"}, {name: text[:-1] + ", extra = 1 : i32}"}] * 2
            for type_ in ("ui8", "i32", "i64"):
                choices.append({name: "{" + ", ".join(filter(None, (f"{key} = {number} : {type_}", rest))) + "}"})
            choices.append({name: "{" + ", ".join(filter(None, (f"{key} = {value}", rest))).replace("76", "85") + "}"})
    changed = {**call.attributes, **random.choice(choices)}
    return replace(call, attributes={name: text for name, text in changed.items() if text is not None})


def _change_layouts(random: Random, call: DrawnCall) -> DrawnCall:
    attributes = dict(call.attributes)
    for name, types in (("operand_layouts", call.operands), ("result_layouts", call.results)):
        orders = []
        for each in types:
            order = list(range(len(each.shape))) if isinstance(each, Tensor) else []
            random.shuffle(order)
            orders.append(f"dense<{order or ''}> : tensor<{len(order)}xindex>")
        attributes[name] = f"[{', '.join(orders)}]"
    return replace(call, attributes=attributes)


def _change_target(random: Random, call: DrawnCall) -> DrawnCall:
    return replace(call, target=random.choice((*KNOWN, *UNKNOWN)))


_CHANGES: Final[tuple[Callable[[Random, DrawnCall], DrawnCall], ...]] = (
    *(_change_type, _change_type, _change_type, _change_number, _change_attribute, _change_attribute),
    *(_change_layouts, _change_target),
)
