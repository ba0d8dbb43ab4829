"""Questions to the library of which some end the process that asks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any
from unittest import mock

from vhlo_tools.spec_tools import probing as questions
from vhlo_tools.spec_tools.probing import bytecode_of, registered_ops

_NAMES = ("abs_v1", "add_v1", "f32_v1", "f64_v1")

__all__ = ["ask_library", "ask_name", "ask_op", "bytecode_of", "registered_ops"]


def ask_library(prefix: str | None) -> dict[str, Any]:
    """Find few names, each of which is asked for, and read no binary for them."""
    with mock.patch.object(questions, "names_in", return_value=set(_NAMES)):
        return questions.ask_library(prefix)


def ask_op(prefix: str | None, op: str, numbers: Sequence[int], versions: Sequence[str]) -> dict[str, dict[str, Any]]:
    if op == "abs":
        os.abort()
    return questions.ask_op(prefix, op, numbers, versions)


def ask_name(prefix: str | None, name: str, versions: Sequence[str]) -> dict[str, dict[str, Any]]:
    if name == "f32_v1":
        os.abort()
    return questions.ask_name(prefix, name, versions)
