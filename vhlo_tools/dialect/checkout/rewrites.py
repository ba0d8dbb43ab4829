"""Steps between versions of ops: changes from the ops themselves, defaults from the patterns.

The patterns are in ``VhloToVersionPatterns.td``, or for ops with regions in ``VhloToVersion.cpp``, which also has the
functions that make defaults.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from itertools import pairwise
from typing import Any, Final

from vhlo_tools.dialect.checkout.definitions import Definitions, OpSource
from vhlo_tools.dialect.checkout.files import Checkout, body_from, plain_code, snake_case, split_arguments
from vhlo_tools.dialect.checkout.tablegen import Records
from vhlo_tools.dialect.scaffold.missing_defaults import default_from, default_of_text
from vhlo_tools.errors import InvalidSpecificationError
from vhlo_tools.records import dataclass

_FILE: Final = "stablehlo/transforms/VhloToVersion.cpp"

#: What functions make that do more than one call, as the ids in ``defaults.toml``.
_MADE: Final = {
    "getEmptyI64Tensor": "empty_tensor",
    "getDefaultConvPadding": "zero_convolution_padding",
    "getDefaultResultAccuracy": "default_result_accuracy",
}


@dataclass(frozen=True, slots=True)
class StepSource:
    older: OpSource
    newer: OpSource
    #: attributes of the newer version only, with the ids of their defaults; None where none was found
    added: Mapping[str, str | None] = field(hash=False)
    removed: Mapping[str, str | None] = field(hash=False)  # attributes of the older version only, likewise
    single: tuple[str, ...]  # operands and results that became variadic
    empty: tuple[str, ...]  # variadic regions that the newer version adds


def read_steps(
    records: Records, checkout: Checkout, definitions: Definitions
) -> tuple[tuple[StepSource, ...], dict[str, tuple[str, str] | None]]:
    """Read the steps, and their defaults by id: the value as text and as TOML, ``None`` where unknown."""
    pairs = [
        (older, newer)
        for older, newer in pairwise(definitions.ops)
        if older.op == newer.op and older.number + 1 == newer.number
    ]
    code = plain_code(checkout.text(_FILE)) if pairs else ""
    patterns = _Patterns(records, code, definitions)
    defaults = _Defaults(code, definitions)
    steps = tuple(_step(older, newer, patterns, defaults, checkout) for older, newer in pairs)
    return steps, defaults.found


def _step(older: OpSource, newer: OpSource, patterns: _Patterns, defaults: _Defaults, checkout: Checkout) -> StepSource:
    def values(source: OpSource, target: OpSource) -> dict[str, str | None]:
        made = patterns.values(source, target)
        found: dict[str, str | None] = {}
        for name in (name for name in target.attributes if name not in source.attributes):
            found[name] = defaults.id_of(made[name], name) if name in made else None
            if found[name] is None:
                checkout.miss(
                    f"{_FILE} and VhloToVersionPatterns.td",
                    f"a pattern from {source.cpp} to {target.cpp} that makes a value for {name}",
                    f"the default of {name} in {target.name}",
                )
        return found

    values_of = [(older.operands, newer.operands), (older.results, newer.results)]
    single = [
        after.name
        for before_all, after_all in values_of
        for before, after in zip(before_all, after_all, strict=False)
        if after.variadic and not before.variadic
    ]
    empty = [region.name for region in newer.regions[len(older.regions) :] if region.variadic]
    same = all(
        len(before) == len(after) or any(slot.variadic for slot in (*before, *after)) for before, after in values_of
    )
    if not same:
        checkout.miss(newer.place, f"as many operands and results as {older.name}", f"the step to {newer.name}")
    return StepSource(older, newer, values(older, newer), values(newer, older), tuple(single), tuple(empty))


class _Patterns:
    """Functions that patterns call to make attributes, per pair of op versions."""

    def __init__(self, records: Records, code: str, definitions: Definitions) -> None:
        self._made: dict[tuple[str, str], dict[str, str]] = {}
        for source, target, arguments in (*_of_records(records), *_of_code(code)):
            op = definitions.op(target)
            if op is not None:
                made = {name: maker for name, maker in zip(op.arguments, arguments, strict=False) if maker}
                self._made[source, target] = made

    def values(self, source: OpSource, target: OpSource) -> Mapping[str, str]:
        return self._made.get((source.cpp, target.cpp), {})


def _of_records(records: Records) -> Iterator[tuple[str, str, list[str | None]]]:
    for record in records.instances("Pattern"):
        try:
            source = _cpp(record["sourcePattern"]["operator"])
            for result in record["resultPatterns"]:
                if isinstance(result, Mapping) and result.get("kind") == "dag":
                    arguments = [_maker(value, records) for value, _ in result["args"]]
                    yield source, _cpp(result["operator"]), arguments
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InvalidSpecificationError):
                raise
            raise InvalidSpecificationError(
                f"{records.place(record)}: the pattern has not the form that MLIR gives it"
            ) from None


def _cpp(reference: Mapping[str, Any]) -> str:
    return str(reference["def"]).partition("_")[2]


def _maker(value: object, records: Records) -> str | None:
    """Return the function that makes an argument of a pattern; ``None`` if the argument comes from the source op."""
    if not isinstance(value, Mapping) or value.get("kind") != "dag":
        return None
    expression = str(records.record(value["operator"]).get("expression", ""))
    call = re.match(r"\s*(\w+)\(\s*\$_builder", expression)
    return call[1] if call else None


# auto newOp = rewriter.replaceOpWithNewOp<ScatterOpV2>(op, op->getResultTypes(), ARGUMENTS);
_REPLACED: Final = re.compile(r"replaceOpWithNewOp<\s*(?:\w+::)*(\w+)\s*>\(")
_STRUCT: Final = re.compile(r"\bstruct\s+\w+\s*(?:final\s*)?:\s*(?:public\s+)?\w+<\s*(?:\w+::)*(\w+)\s*>\s*\{")


def _of_code(code: str) -> Iterator[tuple[str, str, list[str | None]]]:
    for struct in _STRUCT.finditer(code):
        body = body_from(code, struct.start())
        for replaced in _REPLACED.finditer(body):
            # The op, and the types of its results.
            arguments = split_arguments(body[replaced.end() :])[2:]
            calls = (re.match(r"(\w+)\(\s*(?:rewriter|builder)\b", argument) for argument in arguments)
            yield struct[1], replaced[1], [call[1] if call else None for call in calls]


class _Defaults:
    def __init__(self, code: str, definitions: Definitions) -> None:
        self._code = code
        self._definitions = definitions
        self.found: dict[str, tuple[str, str] | None] = {}

    def id_of(self, maker: str, attribute: str) -> str:
        function = re.search(rf"\b\w+\s+{maker}\([^)]*\)\s*\{{", self._code)
        body = " ".join(body_from(self._code, function.start()).split()) if function else ""
        made = self._of_type(body) or next(
            (
                (default.id, (default.text, default.value))
                for given in _given(body)
                if (default := default_from(attribute, given)) is not None
            ),
            None,
        )
        identifier, value = made or (_MADE.get(maker) or snake_case(maker.removeprefix("get")), None)
        self.found[identifier] = value
        return identifier

    def _of_type(self, body: str) -> tuple[str, tuple[str, str]] | None:
        match = re.search(r"^return TypeV1Attr::get\([^;]*?(\w+V\d+Type)::get\(", body)
        kind = self._definitions.kind(match[1]) if match else None
        if kind is None:
            return None
        default = default_of_text("", f"#vhlo.type_v1<!vhlo.{kind.name}>")
        return default.id, (default.text, default.value)


def _given(body: str) -> Iterator[str]:
    """Yield the returned value in the form that the command line takes."""
    if match := re.search(r"^return (?:\w+::)*BooleanV1Attr::get\([^;]*,\s*(true|false)\);", body):
        yield match[1]
    if re.search(r"^return (?:\w+::)*ArrayV1Attr::get\([^;]*,\s*\{\}\);", body):
        yield "[]"
    if match := re.search(r'^return (?:\w+::)*StringV1Attr::get\([^;"]*,\s*("[^"\\]*")\);', body):
        yield match[1]
