"""Settings files as an editor sees them: with the JSON schema that the tool prints."""

from __future__ import annotations

import json
from datetime import date, time
from functools import cache
from typing import Any

from jsonschema import Draft7Validator

from vhlo_tools.gate import settings_schema


def has_schema(table: Any) -> bool:
    """Return whether settings, as parsed from TOML, are valid by their schema; a date of TOML is a string then."""
    return bool(_validator().is_valid(json.loads(json.dumps(table, default=_as_text))))


def _as_text(value: object) -> str:
    assert isinstance(value, date | time)
    return value.isoformat()


@cache
def _validator() -> Draft7Validator:
    schema = settings_schema()
    Draft7Validator.check_schema(schema)
    return Draft7Validator(schema)
