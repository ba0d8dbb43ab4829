"""Artifacts with ops that no installed library knows, written as stand-ins and shown on the bytes."""

from __future__ import annotations

from collections.abc import Sequence

import vhlo_tools as vt
from vhlo_tools.artifact import show_newer_ops

#: What asks for no accuracy.
PLAIN = "mode = #stablehlo.result_accuracy_mode<DEFAULT>"


def newer(program: str, version: str = "1.24.0") -> vt.Artifact:
    """Return the artifact of a program whose calls of ``vhlo_tools.OP`` are ops, of a version."""
    artifact = vt.retarget(vt.serialize(program), version, engine="bytes")
    file = artifact.copy_of_file()
    assert not show_newer_ops(file, artifact.version)
    return artifact.edited(file)


def call(op: str, operands: Sequence[str], type_: str, accuracy: str = PLAIN, more: str = "") -> str:
    """Return a stand-in."""
    held = "" if op == "fma" else f"vhlo_tools.result_accuracy = #stablehlo.result_accuracy<{accuracy}>"
    attributes = ", ".join(filter(None, (held, more)))
    types = ", ".join([type_] * len(operands))
    return f"stablehlo.custom_call @vhlo_tools.{op}({', '.join(operands)}) {{{attributes}}} : ({types}) -> {type_}"


def function(op: str, type_: str, accuracy: str = PLAIN) -> str:
    """Return a function of nothing but an op."""
    names = [f"%{name}" for name in ("abc" if op == "fma" else "a")]
    taken = ", ".join(f"{name}: {type_}" for name in names)
    return f"func.func @main({taken}) -> {type_} {{ %0 = {call(op, names, type_, accuracy)} return %0 : {type_} }}"
