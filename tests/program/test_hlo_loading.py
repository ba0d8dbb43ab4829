"""HLO as a program: read, written, and its aliases and donors kept on the way."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.alias_programs import configs, module_text

import vhlo_tools as vt
from vhlo_tools import api
from vhlo_tools.aliasing import Alias, AliasConfig, Donor, Form, encode_aliases, fits
from vhlo_tools.artifact import inspect_bytes
from vhlo_tools.bindings.xla import hlo_of_text, text_of_hlo
from vhlo_tools.cli.main import main
from vhlo_tools.files import Kind, recognise
from vhlo_tools.files.hlo import ELEMENT_TYPES, parse_header, read_hlo_module
from vhlo_tools.program.hlo_loading import proto_of_text

pytestmark = pytest.mark.every_python

# As the documentation of XLA shows it; its parser refuses the alias in this form.
INCREMENT = """HloModule increment, input_output_alias={ {}: 0 }

ENTRY entry {
  %p = f32[] parameter(0)
  %c = f32[] constant(1)
  ROOT %out = f32[] add(%p, %c)
}
"""
TUPLES = """HloModule tuples, input_output_alias={ {0}: (0, {1}), {1}: (0, {0}, must-alias) }, buffer_donor={ (0, {2}) }

ENTRY entry {
  %p = (f32[4], s32[2,2], bf16[3]) parameter(0)
  %a = f32[4] get-tuple-element(%p), index=0
  %b = s32[2,2] get-tuple-element(%p), index=1
  ROOT %out = (s32[2,2], f32[4]) tuple(%b, %a)
}
"""
BOTH = """HloModule both, input_output_alias={ {1}: (0, {}, may-alias) }, buffer_donor={ (1, {}) }

ENTRY entry {
  %p = f32[4] parameter(0)
  %q = f32[4] parameter(1)
  %s = f32[4] add(%p, %q)
  ROOT %out = (f32[4], f32[4]) tuple(%s, %p)
}
"""


def header_of(artifact: vt.Artifact) -> str:
    return api.program_of(artifact, "hlo-text").decode().partition("\n")[0]


@pytest.mark.parametrize("target", ["0.9.0", "1.0.0", "current"])
def test_the_increment_of_the_documentation_goes_round(target: str) -> None:
    artifact = vt.serialize(INCREMENT, target)
    (found,) = vt.run(artifact, [np.float32(41)])
    assert found == 42
    line = header_of(artifact)
    assert line.startswith("HloModule increment, input_output_alias={ {}: (0, {}, may-alias) }")
    again = vt.serialize(api.program_of(artifact, "hlo-proto"), target)
    assert header_of(again) == line


@pytest.mark.parametrize("target", ["0.9.0", "1.13.0", "current"])
def test_aliases_and_donors_are_kept(target: str) -> None:
    header = parse_header(header_of(vt.serialize(BOTH, target)))
    assert (header.name, header.aliases, header.donors) == ("both", (Alias((1,), 0),), (Donor(1),))


@pytest.mark.long
@settings(max_examples=60)
@given(
    configs(tuples=False), st.sampled_from([None, "argument", "module"]), st.sampled_from(["0.9.0", "1.5.0", "current"])
)
def test_any_aliases_and_donors_go_to_hlo_and_back(config: AliasConfig, form: Form | None, target: str) -> None:
    """Through a version of VHLO, in either spelling, as text and as a protocol buffer."""
    encoded = encode_aliases(config, form if form and fits(config, form) else None)
    artifact = vt.serialize(module_text(config.signature, encoded), target)
    assert artifact.aliases() == config
    text = api.program_of(artifact, "hlo-text").decode()
    header = parse_header(text.partition("\n")[0])
    assert (header.aliases, header.donors) == (config.aliases, config.donors)
    for program in (text, api.program_of(artifact, "hlo-proto")):
        assert vt.serialize(program, target).aliases() == config


def test_aliases_follow_parameters_that_xla_takes_apart() -> None:
    artifact = vt.serialize(TUPLES, "1.0.0")
    header = parse_header(header_of(artifact))
    assert header.aliases == (Alias((0,), 1), Alias((1,), 0, (), "must-alias"))
    assert header.donors == (Donor(2),)
    inputs = [np.ones(4, np.float32), np.ones((2, 2), np.int32), np.zeros(3, ml_dtypes.bfloat16)]
    assert [each.dtype.name for each in vt.run(artifact, inputs, donate=(0,))] == ["int32", "float32"]


@pytest.mark.parametrize("text", [INCREMENT, TUPLES, BOTH])
def test_protocol_buffers_say_what_text_says(text: str) -> None:
    proto = proto_of_text(text, "x")
    assert recognise(proto) is Kind.HLO_PROTO
    assert recognise(text.encode()) is Kind.HLO_TEXT
    assert read_hlo_module(memoryview(proto)) == parse_header(text_of_hlo(proto).partition("\n")[0])
    # As an `HloProto`, which has the module in its first field.
    size = len(proto).to_bytes(1, "little") if len(proto) < 128 else bytes([len(proto) & 127 | 128, len(proto) >> 7])
    wrapped = b"\x0a" + size + proto
    assert recognise(wrapped) is Kind.HLO_PROTO
    assert bytes(vt.serialize(wrapped)) == bytes(vt.serialize(proto)) == bytes(vt.serialize(text))


@pytest.mark.parametrize("element", sorted(set(ELEMENT_TYPES.values()) - {"tuple", "opaque", "token", "s1", "u1"}))
def test_element_types(element: str) -> None:
    proto = hlo_of_text(f"HloModule m\n\nENTRY e {{\n  ROOT %p = {element}[2,3] parameter(0)\n}}\n")
    signature = read_hlo_module(memoryview(proto)).signature
    assert signature is not None
    assert str(signature.parameters[0]) == str(signature.result) == f"{element}[2,3]"


@pytest.mark.long
def test_every_cut_and_many_flips_of_a_protocol_buffer_are_read_or_refused() -> None:
    proto = proto_of_text(TUPLES, "x")
    for end in range(len(proto)):
        describe(proto[:end])
    for at in range(len(proto)):
        for bit in range(8):
            describe(proto[:at] + bytes([proto[at] ^ 1 << bit]) + proto[at + 1 :])


def describe(data: bytes) -> None:
    try:
        inspect_bytes(data, "x")
    except vt.VhloToolsError as error:
        assert str(error)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("HloModule x, input_output_alias={ {}: }\n", "is not an entry of a list"),
        ("HloModule x, input_output_alias={ {}: 0 \n", "braces of input_output_alias are not closed"),
        ("HloModule x\n\nENTRY e { nonsense }\n", "Syntax error"),
        (INCREMENT.replace("{}: 0", "{3}: 0"), "invalid index"),
    ],
)
def test_what_is_not_valid_is_refused_with_a_reason(text: str, message: str) -> None:
    with pytest.raises(vt.InvalidProgramError, match=message):
        vt.serialize(text, name="x.hlo")


def test_at_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, artifact = tmp_path / "increment.hlo", tmp_path / "increment.mlirbc"
    source.write_text(INCREMENT)
    assert main(["serialize", str(source), "--target", "0.9.0", "-o", str(artifact)]) == 0
    assert main(["inspect", str(source), "--output-format", "json"]) == 0
    described = json.loads(capsys.readouterr().out)
    assert described["kind"] == "hlo-text"
    assert described["aliases"] == [
        {"output_index": [], "parameter_number": 0, "parameter_index": [], "kind": "may-alias"}
    ]
    assert main(["deserialize", str(artifact), "--emit", "hlo-text"]) == 0
    assert "input_output_alias={ {}: (0, {}, may-alias) }" in capsys.readouterr().out
    proto = tmp_path / "increment.pb"
    assert main(["deserialize", str(artifact), "--emit", "hlo-proto", "-o", str(proto)]) == 0
    assert main(["inspect", str(proto)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:] == [
        f"  is       HLO as protocol buffer, {proto.stat().st_size} bytes",
        "  read by  depends on the version that it is written for: see `vhlo check --target minimum`",
        "  takes    1 parameter: f32[]",
        "  gives    f32[]; aliased: {} with parameter 0",
    ]
    assert main(["check", str(proto), "--target", "1.0.0"]) == 0


@pytest.mark.parametrize(
    ("results", "message"), [(1, "Aliasing output must be 0 if only one output exists"), (2, "invalid index")]
)
def test_what_xla_refuses_has_no_form_in_hlo(results: int, message: str) -> None:
    kinds, values = ", ".join(["tensor<4xf32>"] * results), ", ".join(["%a"] * results)
    argument = "%a: tensor<4xf32> {tf.aliasing_output = 5 : i32}"
    text = f"func.func @main({argument}) -> ({kinds}) {{ return {values} : {kinds} }}"
    with pytest.raises(vt.InvalidProgramError, match=f"cannot be represented in HLO: .*{message}"):
        api.program_of(vt.serialize(text, alias_lint=False), "hlo-text")


def test_a_computation_of_xla_is_a_program_too() -> None:
    from jaxlib.xla_client import XlaComputation

    computation = XlaComputation(proto_of_text(INCREMENT, "x"))
    assert bytes(vt.serialize(computation)) == bytes(vt.serialize(INCREMENT))
