"""Questions to the library of which some end the process that asks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from vhlo_tools.probing import questions
from vhlo_tools.probing.questions import ask_library, bytecode_of, registered_ops

__all__ = ["ask_library", "ask_name", "ask_op", "bytecode_of", "registered_ops"]


def ask_op(prefix: str | None, op: str, numbers: Sequence[int], versions: Sequence[str]) -> dict[str, dict[str, Any]]:
    if op == "abs":
        os.abort()
    return questions.ask_op(prefix, op, numbers, versions)


def ask_name(prefix: str | None, name: str, versions: Sequence[str]) -> dict[str, dict[str, Any]]:
    if name == "f32_v1":
        os.abort()
    return questions.ask_name(prefix, name, versions)
