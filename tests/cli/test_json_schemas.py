"""What commands print as JSON is what their schemas say, and they say all of it."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator
from support.click_commands import commands_of
from support.corpus import EXAMPLES, ROOT
from support.json_records import closed, problems, schema_problems

from vhlo_tools.cli.helping import prints_json
from vhlo_tools.cli.main import cli, main
from vhlo_tools.cli.schemas import OUTPUTS, output_schema

SAXPY = str(EXAMPLES / "saxpy.mlir")
STEP = str(EXAMPLES / "transformer_step.mlir")
KERAS = str(EXAMPLES / "keras_mlp.mlirbc")
PROGRAMS = [*EXAMPLES.glob("*.*"), *EXAMPLES.glob("jax_store/*")]
FILES = sorted(str(path) for path in PROGRAMS if path.suffix not in (".py", ".md", ".ipynb"))
SPECS = str(ROOT / "dialect_specs")

#: Of each command, calls that print each of its outputs; {} is a folder.
CALLS: Final[Mapping[str, tuple[str, ...]]] = {
    "alias clear": ("{}/step.mlirbc -o {}/o", f"{SAXPY} -o {{}}/o"),
    "alias convert": ("{}/step.mlirbc --form module -o {}/o",),
    "alias set": (f"{KERAS} --donor 0 -o {{}}/o",),
    "alias show": (STEP, SAXPY, f"{EXAMPLES}/symbolic_export.jax_export"),
    "check": (
        f"{SAXPY} {STEP} --target 1.0.0 --target 12w --no-cache",
        f"{' '.join(FILES)} --target jaxlib==0.4.31 --no-cache",
        f"{SAXPY} {STEP} --target 1.0.0 --baseline {{}}/known.json --update-baseline --no-cache",
        f"{SAXPY} {STEP} --target 1.0.0 --statistics --no-cache",
        f"{EXAMPLES} --show-files",
        f"{SAXPY} --target 1.0.0 --show-settings",
        "--explain tan",
        "--explain range_locations",
        "--explain violates_specification",
    ),
    "constants externalize": (f"{KERAS} --min-size 64 -o {{}}/o",),
    "constants extract": (f"{KERAS} -o {{}}/w.safetensors", f"{KERAS} -o {{}}/w.npz"),
    "constants list": (KERAS,),
    "constants restore": ("{}/small.mlirbc --weights {}/small.safetensors -o {}/o",),
    "diff": (f"{SAXPY} {STEP}", f"{SAXPY} {SAXPY}"),
    "golden check": ("{}/golden",),
    "inspect": tuple(FILES),
    "manifest check": ("{}/step.mlirbc", "{}/changed.mlirbc", "{}"),
    "migrate": ("{} --target 1.0.0 --dry-run", "{} --target 1.0.0 --output-dir {}/moved --verify"),
    "retarget": (
        f"{KERAS} --strip-debug-info -o {{}}/o",
        "{}/step.mlirbc --target 1.9.0 -o {}/o",
        "{}/step.mlirbc --target 1.0.0 -o {}/o",
    ),
    "run": (f"{SAXPY} -i 2.0 -i [1,2,3,4] -i [1,1,1,1]",),
    "serialize": (f"{SAXPY} -o {{}}/o", f"{STEP} --target 1.0.0 -o {{}}/o"),
    "spec diff": ("1.0.0 1.9.0",),
    "spec lint": ("",),
    "spec list": ("",),
    "spec new-version": ("1.25.0 --op shapes/fold(operand)->result --dry-run",),
    "spec probe": ("",),
    "spec show": ("tan_v1", "tensor", "type_extensions"),
    "store status": (f"{EXAMPLES}", "{}"),
    "targets": ("", "jaxlib==0.4.31 12w", "--as-of 2025-06-01"),
    "verify": (
        f"{SAXPY} {SAXPY} --rounds 2",
        f"{SAXPY} {{}}/other.mlir --rounds 2",
        f"{SAXPY} --engines reference,xla",
        f"{EXAMPLES}/jax_store {EXAMPLES}/jax_store",
    ),
}
#: Those whose outputs need what the short tests do not have, with the test that validates them.
ELSEWHERE: Final = {
    "compile": "tests/releases/test_compiling.py",
    "matrix": "tests/releases/test_matrix.py",
    "spec import": "tests/spec_tools/test_checkout.py",
    "report": "tests/frontends/scale/test_store_report.py",
}
_READ: Final = [(command, call) for command, calls in CALLS.items() for call in calls]


def output_of(*arguments: str) -> Any:
    with io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) as printed:
        with redirect_stdout(printed):
            # 2, because files of frameworks that are not installed cannot be checked: that is in the JSON too.
            assert main([*arguments, "--output-format", "json"]) in (0, 1, 2)
        printed.seek(0)
        return json.load(printed)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("json")
    for call in (
        f"serialize {STEP} -o {made}/step.mlirbc",
        f"manifest write {made}/step.mlirbc",
        f"constants externalize {KERAS} --min-size 64 -o {made}/small.mlirbc",
        f"golden record {made}/golden {SAXPY}",
    ):
        assert main(call.split()) == 0
    (made / "other.mlir").write_text(Path(SAXPY).read_text().replace("stablehlo.add", "stablehlo.subtract"))
    (made / "changed.mlirbc").write_bytes(Path(KERAS).read_bytes())
    (made / "changed.mlirbc.manifest.json").write_bytes((made / "step.mlirbc.manifest.json").read_bytes())
    (made / "broken.mlirbc").write_bytes(b"ML\xefRtorn")
    return made


def test_every_command_that_prints_json_has_a_schema() -> None:
    assert (
        sorted(words for words, each in commands_of(cli) if prints_json(each))
        == sorted(OUTPUTS)
        == sorted([*CALLS, *ELSEWHERE])
    )
    for command, path in ELSEWHERE.items():
        assert f'schema_problems("{command}", ' in (ROOT / path).read_text()


@pytest.mark.parametrize("command", OUTPUTS)
def test_the_schemas_are_schemas(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command.split(), "--json-schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    Draft202012Validator.check_schema(schema)
    assert schema["title"].startswith(f"vhlo {command} ")


@pytest.mark.parametrize(
    ("command", "call"), _READ, ids=[f"{command} {Path(call).name[:30]}" for command, call in _READ]
)
def test_the_schema_has_all_that_is_printed(command: str, call: str, folder: Path) -> None:
    (folder / "o").unlink(missing_ok=True)
    found = output_of(*command.split(), *(each.replace("{}", str(folder)) for each in call.split()))
    schema = output_schema(command)
    assert schema_problems(command, found) == []
    if command == "inspect" and "portable-artifact" in (found["kind"], found.get("artifact", {}).get("kind")):
        # The parts of an artifact are described completely.
        held = found.get("artifact") or {
            key: value
            for key, value in found.items()
            if key not in ("path", "manifest", "schema_version", "tool_version")
        }
        described = {**schema, "$ref": "#/$defs/InspectedArtifact"}
        assert problems(described, held) == []


def test_a_key_that_is_not_described_is_noticed() -> None:
    validator = Draft202012Validator(closed(output_schema("diff")))
    found = output_of("diff", SAXPY, SAXPY)
    validator.validate(found)
    assert not validator.is_valid({**found, "more": 1})
    assert not validator.is_valid({key: value for key, value in found.items() if key != "equal"})
