"""Write programs with the bare library of this environment.

Runs inside releases, old ones included, and so imports nothing of this project. The argument is the folder of the job,
which holds ``job.json`` and gets one file per artifact and ``log.jsonl``. The log says what was begun, so that what a
process died of is known.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

import io
import json
import os
import sys
from importlib import import_module
from pathlib import Path

JOB = Path(sys.argv[1])
try:
    ir = import_module("jaxlib.mlir.ir")
    PREFIX = "jaxlib.mlir"
except ImportError:
    ir = import_module("torch_mlir.ir")
    PREFIX = "torch_mlir"
stablehlo = import_module(PREFIX + "._mlir_libs._stablehlo")
# Up to jaxlib 0.4.31 only the form that takes text works; the other crashes the process.
BY_TEXT = not hasattr(stablehlo, "serialize_portable_artifact_str")
MESSAGES = JOB / "messages"


def context():
    """Return a context with all dialects, as each release registers them."""
    made = ir.Context()
    if PREFIX == "jaxlib.mlir":
        for name in ("register_jax_dialects", "_jax_mlir_ext"):
            try:
                extension = import_module("jaxlib.mlir._mlir_libs." + name)
            except ImportError:
                continue
            registry = ir.DialectRegistry()
            extension.register_dialects(registry)
            made.append_dialect_registry(registry)
        for name in ("chlo", "sdy"):
            try:
                import_module("jaxlib.mlir.dialects." + name).register_dialect(made)
            except ImportError:
                continue
    stablehlo.register_dialect(made)
    made.load_all_available_dialects()
    # Quantized types parse only in a context that has deserialized something.
    stablehlo.deserialize_portable_artifact(made, stablehlo.serialize_portable_artifact_str(b"module {}", "0.9.0"))
    return made


def parsed(program, text):
    """Return the module of a program, changed as is asked for."""
    made = context()
    made.allow_unregistered_dialects = program["unregistered"]
    module = ir.Module.parse(text, made)
    if program["passes"]:
        manager = import_module(PREFIX + ".passmanager").PassManager.parse(program["passes"], made)
        manager.run(module.operation)
    if program["shuffle"]:
        for function in module.body.operations:
            shuffle(function.operation)
        module.operation.verify()
    return module


def shuffle(op):
    """Exchange neighbours that do not depend on each other: an op comes to stand before one whose use is older."""
    for region in op.regions:
        for block in region.blocks:
            inner = [each.operation for each in block.operations]
            for each in inner:
                shuffle(each)
            for first, second in zip(inner[:-1:2], inner[1:-1:2], strict=False):
                if not any(value.owner == first for value in second.operands) and not list(second.regions):
                    second.move_before(first)


def serialize(program, text, target):
    """Return the artifact of a program."""
    if BY_TEXT:
        if program["mixed"] or program["shuffle"] or program["passes"]:
            raise ValueError("this release only serializes text")
        return stablehlo.serialize_portable_artifact(text, target)
    module = parsed(program, text)
    if program["mixed"]:
        try:
            return stablehlo.serialize_portable_artifact(module, target, True)
        except TypeError:
            raise ValueError("this release has no allow_other_dialects") from None
    return stablehlo.serialize_portable_artifact(module, target)


def bytecode(program, text, target):
    """Return a program as ordinary bytecode."""
    made = io.BytesIO()
    if target == "newest":
        parsed(program, text).operation.write_bytecode(made)
    else:
        parsed(program, text).operation.write_bytecode(made, desired_version=int(target))
    return made.getvalue()


def reason(error):
    """Return why a program was refused, in a line: the first error that MLIR printed, or else the exception."""
    for line in MESSAGES.read_text(errors="replace").splitlines():
        if "error: " in line:
            return line.split("error: ", 1)[1].strip()[:200]
    cause = error.__cause__ or error
    lines = [line.strip() for line in str(cause).splitlines() if "error: " in line] or str(cause).split("\n")
    return lines[0][:200]


def main():
    """Write everything that the job asks for."""
    job = json.loads((JOB / "job.json").read_text())
    log = (JOB / "log.jsonl").open("a")

    def say(**entry):
        log.write(json.dumps(entry) + "\n")
        log.flush()

    messages = os.open(MESSAGES, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    os.dup2(messages, 2)
    write = bytecode if job["ordinary"] else serialize
    number = 0
    for index, program in enumerate(job["programs"]):
        texts = program["spellings"]
        for target in job["targets"]:
            data = None
            for text in texts:
                say(begun=index, program=program["name"], target=target)
                os.ftruncate(messages, 0)
                os.lseek(messages, 0, os.SEEK_SET)
                try:
                    data = write(program, text, target)
                    break
                except Exception as error:
                    refusal = {"program": program["name"], "target": target, "refused": reason(error)}
            if data is None:
                say(**refusal)
                if target == job["targets"][0]:
                    break  # what the newest target refuses, all do
                continue
            texts = [text]
            (JOB / str(number)).write_bytes(data)
            say(program=program["name"], target=target, written=str(number))
            number += 1


main()
