"""Custom calls: payloads with versions of their own, of which StableHLO promises nothing."""

from __future__ import annotations

from dataclasses import replace

from vhlo_tools.bytecode import File, Place, visit
from vhlo_tools.compat.places import Places, attributes_of
from vhlo_tools.dialect import find_enum
from vhlo_tools.findings import Finding

__all__ = ["custom_call_notes"]

_API_VERSIONS = "api_version_v1"


def custom_call_notes(file: File, name: str) -> list[Finding]:
    """Return a note for each custom call of a file: what it calls, by which API, with how much payload.

    Args:
        file: The file.
        name: What the program is called.

    Raises:
        MalformedArtifactError: If the file is damaged.
    """
    ops = {index for index in range(len(file.dialects.ops)) if file.op_name(index).startswith("vhlo.custom_call_v")}
    if not ops:
        return []
    places = Places(file, name)
    found: dict[Finding, Finding] = {}

    def note(place: Place, values: list[int]) -> None:
        if place.op.name not in ops:
            return
        finding = Finding(
            feature="custom_call",
            level="note",
            kind="op",
            message=_message(file, attributes_of(file, place.op)),
            op="stablehlo.custom_call",
            location=places.source(place.op.location),
            remedy="see that every consumer knows the target; StableHLO promises nothing of it",
            function=places.function(place),
        )
        known = found.get(finding)
        found[finding] = replace(known, count=known.count + 1) if known else replace(finding, path=places.path(place))

    visit(file.ir, note, lambda block, around: None)
    return list(found.values())


def _message(file: File, attributes: dict[str, int]) -> str:
    target = _field(file, attributes.get("call_target_name"))
    called = file.string(target) if isinstance(target, int) else "something"
    enum, number = find_enum(_API_VERSIONS), _field(file, attributes.get("api_version"))
    case = enum.case_of(number) if enum and isinstance(number, int) else None
    config = attributes.get("backend_config")
    value = file.decode("attribute", config) if config is not None else None
    if value is not None and value.name == "string_v1":
        payload = f"{len(file.strings[value.field('value')])} bytes"
    elif value is not None and value.name == "dict_v1":
        payload = f"a dictionary of {len(value.field('elements'))}"
    else:
        payload = "nothing"
    return f"a custom call of {called} ({case.name if case else number}) with {payload} as backend_config"


def _field(file: File, index: int | None) -> object:
    value = file.decode("attribute", index) if index is not None else None
    return value.fields[0] if value is not None and value.fields else None
