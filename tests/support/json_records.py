"""Records of JSON as commands print them."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import Any


def body(text: str) -> Any:
    """Return a record without what every record begins with."""
    record = json.loads(text)
    head = {"schema_version": 1, "tool_version": version("vhlo-tools")}
    assert dict([*record.items()][: len(head)]) == head
    return {key: value for key, value in record.items() if key not in head}
