"""Custom calls: payloads with versions of their own, for which StableHLO has no compatibility guarantee."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from vhlo_tools.bytecode import Places, attributes_of, visit
from vhlo_tools.dialect import find_enum, find_op_version
from vhlo_tools.findings import Finding

if TYPE_CHECKING:
    from vhlo_tools.bytecode import File, Place

_API_VERSIONS = "api_version_v1"


def custom_call_notes(file: File, name: str) -> list[Finding]:
    """Return a note for each custom call, except those of op versions that the specification lacks."""
    named = ((index, file.op_name(index)) for index in range(len(file.dialects.ops)))
    calls = ((index, name.removeprefix("vhlo.")) for index, name in named if name.startswith("vhlo.custom_call_v"))
    ops = {index for index, version in calls if find_op_version(version) is not None}
    if not ops:
        return []
    places = Places(file, name)
    found: dict[Finding, Finding] = {}

    def note(place: Place, values: list[int]) -> None:
        finding = Finding(
            feature="custom_call",
            level="note",
            kind="op",
            message=_message(file, attributes_of(file, place.op)),
            op="stablehlo.custom_call",
            location=places.source(place.op.location),
            remedy="check that every consumer supports the target; StableHLO does not guarantee it",
            function=places.function(place),
        )
        known = found.get(finding)
        found[finding] = replace(known, count=known.count + 1) if known else replace(finding, path=places.path(place))

    visit(file.program, note, lambda block, around: None, lambda head: head.name in ops)
    return list(found.values())


def _message(file: File, attributes: Mapping[str, int]) -> str:
    called = file.text(attributes.get("call_target_name")) or "something"
    enum, number = find_enum(_API_VERSIONS), _field(file, attributes.get("api_version"))
    case = enum.case_of(number) if enum and isinstance(number, int) else None
    config = attributes.get("backend_config")
    if (text := file.raw_text(config)) is not None:
        payload = f"{len(text)} bytes"
    elif (held := file.dictionary(config)) is not None:
        payload = f"a dictionary of {len(held)}"
    else:
        payload = "nothing"
    return f"a custom call of {called} ({case.name if case else number}) with {payload} as backend_config"


def _field(file: File, index: int | None) -> object:
    value = file.decode("attribute", index) if index is not None else None
    return value.fields[0] if value is not None and value.fields else None
