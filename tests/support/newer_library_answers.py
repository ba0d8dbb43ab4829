"""Answers of this package about programs, as JSON: ``newer_library_answers.py [--no-library] < QUESTIONS``.

It is run beside a specification that ends before the installed library. Each line of its input is a question, as JSON,
which a line answers: ``["answers", FOLDER, PROGRAM, ...]`` is what is said of programs, which the tests hold against
what the whole specification says; FOLDER gets their artifacts. ``["vhlo", ARGUMENT, ...]`` is a command, answered by
its exit code, and by what it writes to stdout and stderr. One process answers all of them, since each would import, and
start a child for the library, anew. With ``--no-library`` no bindings can be imported, and each PROGRAM is an artifact.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

import vhlo_tools as vt
from vhlo_tools.cli.inspect import _lines
from vhlo_tools.cli.main import main as run_command
from vhlo_tools.findings import Finding, finding_as_json
from vhlo_tools.spec import known_versions

#: A target of each kind.
KINDS = ("current", "WEEK_4", "WEEK_12", "MAX", "12w", "1.9.0", "jaxlib==0.8.1")


class Blocker:
    """Lets nobody import bindings."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] in ("jaxlib", "jax", "torch_mlir", "mlir"):
            raise ImportError(f"{name} is blocked")


def outcome(asked: Callable[[], Any]) -> Any:
    """Return what a question gives, or the name of the typed error with its message and findings."""
    try:
        return asked()
    except vt.VhloToolsError as error:
        found = findings(getattr(error, "findings", ()))
        return {"error": type(error).__name__, "message": str(error), "findings": found}


def findings(found: Iterable[Finding]) -> list[dict[str, Any]]:
    return [finding_as_json(each) for each in found]


def checked(program: str | bytes, target: str) -> list[dict[str, Any]]:
    return findings(vt.check(program, target))


def required(data: bytes, target: str) -> str:
    return str(vt.require(data, target).version)


def moved(data: bytes, target: str, engine: Any, path: Path) -> dict[str, Any]:
    artifact = vt.retarget(data, target, engine=engine)
    artifact.save(path, force=True)
    return {"version": str(artifact.version), "findings": findings(artifact.findings), "path": str(path)}


def answers(name: str, data: bytes, folder: Path, targets: list[str]) -> dict[str, Any]:
    artifact = vt.open_artifact(data)
    stripped = vt.strip(data)
    described = json.loads(json.dumps(inspected(data)))
    result: dict[str, Any] = {
        "version": str(artifact.version),
        "inspect": described["requirements"],
        "inspect_text": list(_lines(described)),
        "text": outcome(artifact.text),
        "aliases": outcome(lambda: str(artifact.aliases())),
        "stripped": outcome(lambda: [str(each) for each in vt.diff(data, bytes(stripped))]),
        "path": str(folder / f"{name}.mlirbc"),
    }
    artifact.save(result["path"], force=True)
    for target in targets:
        kept = folder / f"{name}-{target}"
        result[target] = {
            "check": outcome(partial(checked, data, target)),
            "require": outcome(partial(required, data, target)),
            "auto": outcome(partial(moved, data, target, "auto", Path(f"{kept}.auto"))),
            "bytes": outcome(partial(moved, data, target, "bytes", Path(f"{kept}.bytes"))),
        }
    return result


def library_answers(program: Path, data: bytes, targets: list[str]) -> dict[str, Any]:
    """Return the answers for which MLIR is needed, about a program as text, and its artifact."""
    text = program.read_text()
    return {
        "program": {target: outcome(partial(checked, text, target)) for target in targets},
        "deserialized": outcome(lambda: str(vt.deserialize(data))),
        "verified": verified(program, data),
        "kinds": {target: outcome(partial(through, program, target)) for target in KINDS},
    }


def through(program: Path, target: str) -> dict[str, Any]:
    """Return what becomes of a program that is written for a target and read again."""
    artifact = vt.serialize(program, target)
    version, meant = str(artifact.version), str(vt.resolve_target(target).version)
    return {"version": version, "meant": meant, "text": str(vt.deserialize(bytes(artifact)))}


def verified(program: Path, data: bytes) -> Any:
    """Return whether an artifact computes what the text does, or why that cannot be told."""
    return outcome(lambda: vt.verify(program, data).passed)


def inspected(data: bytes) -> dict[str, Any]:
    from vhlo_tools.artifact import inspect_bytes

    return inspect_bytes(data, "the input")


def all_answers(without: bool, folder: Path, programs: list[Path]) -> dict[str, Any]:
    ends = known_versions()[-1].version
    current = None if without else str(vt.resolve_target("current").version)
    newest = vt.Version(current) if current else max(vt.open_artifact(each).version for each in programs)
    between = [f"1.{minor}.0" for minor in range(ends.minor, newest.minor + 1)]
    targets = ["0.9.0", "1.5.0", f"1.{ends.minor - 1}.0", *between]
    result: dict[str, Any] = {"ends": str(ends), "current": current, "targets": targets, "programs": {}}
    for program in programs:
        name = program.stem
        data = program.read_bytes() if without else bytes(vt.serialize(program))
        told = answers(name, data, folder, targets)
        if not without:
            told |= library_answers(program, data, targets)
        result["programs"][name] = told
    return result


def command(arguments: list[str]) -> tuple[int, str, str]:
    """Run a command, and return its exit code, and what it wrote to stdout and stderr."""
    out, error = io.BytesIO(), io.BytesIO()
    printed, said = (io.TextIOWrapper(each, encoding="utf-8", write_through=True) for each in (out, error))
    with redirect_stdout(printed), redirect_stderr(said):
        code = run_command(arguments)
    return code, out.getvalue().decode(), error.getvalue().decode()


def main() -> None:
    without = sys.argv[1:] == ["--no-library"]
    if without:
        sys.meta_path.insert(0, Blocker())
    for line in sys.stdin:
        kind, *arguments = json.loads(line)
        if kind == "vhlo":
            answer: Any = command(arguments)
        else:
            folder, *programs = map(Path, arguments)
            answer = all_answers(without, folder, programs)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
