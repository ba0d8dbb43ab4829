"""What a page holds, read back from its text as a browser reads it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from typing import Any


def elements_of(page: str) -> dict[str, str]:
    """Return the text of the elements that are not markup: style, script, and data by their ids."""
    found = dict(re.findall(r'<script type="application/gzip" id="(\w+)"[^>]*>(.*?)</script>', page))
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    (script,) = re.findall(r'<script type="module">(.*?)</script>', page, re.DOTALL)
    return {**found, "style": style, "script": script}


def contents_of(page: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(elements_of(page)["data"])))
    return found


def policy_of(page: str) -> dict[str, list[str]]:
    """Return what the page allows itself, by kind."""
    (text,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    return {kind: allowed for kind, *allowed in (part.split() for part in text.split(";"))}


def digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
