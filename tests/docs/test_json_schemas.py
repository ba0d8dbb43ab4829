"""What commands print as JSON is what the schemas in the documentation say, and they say all of it."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from support.corpus import EXAMPLES, ROOT

from vhlo_tools.cli.main import main

SCHEMAS = ROOT / "docs" / "reference" / "schemas"
SAXPY = str(EXAMPLES / "saxpy.mlir")
STEP = str(EXAMPLES / "transformer_step.mlir")
PROGRAMS = [*EXAMPLES.glob("*.*"), *EXAMPLES.glob("jax_store/*")]
FILES = sorted(str(path) for path in PROGRAMS if path.suffix not in (".py", ".md", ".ipynb"))


def closed(schema: Any) -> Any:
    """Return a schema that refuses every key of an object that it does not describe."""
    if isinstance(schema, list):
        return list(map(closed, schema))
    if not isinstance(schema, dict):
        return schema
    made = {key: closed(value) for key, value in schema.items()}
    return (
        {"additionalProperties": False, **made} if schema.get("type") == "object" and "properties" in schema else made
    )


def schema_of(command: str) -> Any:
    return json.loads((SCHEMAS / f"{command}.json").read_text())


def output_of(*arguments: str) -> Any:
    with io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) as printed:
        with redirect_stdout(printed):
            # 2, because files of frameworks that are not installed cannot be checked: that is in the JSON too.
            assert main([*arguments, "--output-format", "json"]) in (0, 1, 2)
        printed.seek(0)
        return json.load(printed)


@pytest.mark.parametrize("path", sorted(SCHEMAS.iterdir()), ids=lambda path: path.stem)
def test_the_schemas_are_schemas_and_are_listed(path: Path) -> None:
    Draft202012Validator.check_schema(json.loads(path.read_text()))
    assert f"(schemas/{path.name})" in (SCHEMAS.parent / "json.md").read_text()


@pytest.mark.parametrize("file", FILES, ids=lambda file: Path(file).name)
def test_inspect(file: str, tmp_path: Path) -> None:
    schema = schema_of("inspect")
    facts = output_of("inspect", file)
    Draft202012Validator(schema).validate(facts)
    # The parts of an artifact are described completely.
    artifact = facts.get("artifact", facts)
    if artifact["kind"] == "portable-artifact":
        described = closed(schema["oneOf"][1]["properties"]["artifact"])
        common = {key: value for key, value in artifact.items() if key not in ("path", "manifest")}
        Draft202012Validator(described).validate(common)


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", SAXPY, STEP, "--target", "1.0.0", "--target", "12w"),
        ("check", *FILES, "--target", "jaxlib==0.4.31"),
        ("diff", SAXPY, STEP),
        ("diff", SAXPY, SAXPY),
        ("verify", SAXPY, SAXPY),
    ],
    ids=lambda arguments: " ".join(Path(each).name for each in arguments)[:40],
)
def test_other_commands(arguments: tuple[str, ...]) -> None:
    Draft202012Validator(closed(schema_of(arguments[0]))).validate(output_of(*arguments))


def test_a_key_that_is_not_described_is_noticed() -> None:
    validator = Draft202012Validator(closed(schema_of("diff")))
    validator.validate({"equal": True, "differences": []})
    assert not validator.is_valid({"equal": True, "differences": [], "more": 1})
    assert not validator.is_valid({"equal": True})
