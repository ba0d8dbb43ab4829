"""Records of JSON as commands print them."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import relevance

from vhlo_tools.cli.schemas import output_schema


def body(text: str) -> Any:
    """Return a record without what every record begins with."""
    record = json.loads(text)
    head = {"schema_version": 1, "tool_version": version("vhlo-tools")}
    assert dict([*record.items()][: len(head)]) == head
    return {key: value for key, value in record.items() if key not in head}


def closed(schema: Any) -> Any:
    """Return a schema that refuses every key of an object that it does not describe."""
    if isinstance(schema, list):
        return list(map(closed, schema))
    if not isinstance(schema, dict):
        return schema
    made = {key: closed(value) for key, value in schema.items()}
    # Files of other kinds have further keys.
    open_ones = schema.get("title") == "InspectedFile"
    return (
        {"additionalProperties": False, **made}
        if schema.get("type") == "object" and "properties" in schema and not open_ones
        else made
    )


def problems(schema: Any, found: Any) -> list[str]:
    """Return what is wrong with an output, of several possible outputs with that which it is most like."""
    first = max(Draft202012Validator(closed(schema)).iter_errors(found), key=relevance, default=None)
    if first is None:
        return []
    branches = [[each for each in first.context or [] if each.schema_path[0] == one] for one in range(9)]
    fewest = min((each for each in branches if each), key=len, default=[first])
    return [f"{each.json_path}: {each.message[:200]}" for each in fewest]


def schema_problems(command: str, found: Any) -> list[str]:
    """Return what an output has that the schema of its command does not, or the reverse."""
    return problems(output_schema(command), found)
