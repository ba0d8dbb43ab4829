"""Export functions with the JAX of this environment; runs inside releases, and so imports nothing of this project.

Arguments and log are those of ``corpus_writer.py``; the spelling of a program is the source of its functions.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, attr-defined, import-not-found, import-untyped"

import json
import re
import sys
import types
from pathlib import Path
from typing import Any

import jax

try:
    import absl  # noqa: F401
except ImportError:
    # Releases before 0.6 log their exports with it, and do not require it.
    nothing = types.ModuleType("absl")
    nothing.logging = types.SimpleNamespace(vlog_is_on=lambda level: False)
    sys.modules["absl"] = nothing

from jax import export

JOB = Path(sys.argv[1])
jax.config.update("jax_platforms", "cpu")
# No path of this machine may come into an artifact: locations hold the last part of a path only.
jax.config.update("jax_include_full_tracebacks_in_locations", False)
jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")


def exported(name, text):
    """Return the artifact that JAX makes of a function."""
    space: dict[str, Any] = {}
    exec(compile(text, "model.py", "exec"), space)
    plain = name.removesuffix("_symbolic")
    function, arguments, donated = space["MODELS"][plain]
    if plain != name:
        (argument,) = arguments
        shape = export.symbolic_shape(space["SYMBOLIC"][plain])
        arguments = (jax.ShapeDtypeStruct(shape, argument.dtype),)
    jitted = jax.jit(function, donate_argnums=donated)
    options = {"disabled_checks": [export.DisabledSafetyCheck.custom_call("lapack_ssyevd_ffi")]}
    data = bytes(export.export(jitted, platforms=("cpu",), **options)(*arguments).mlir_module_serialized)
    if re.search(rb"/(tmp|root|home|usr|work|private|Users)/|site-packages", data):
        raise ValueError("the artifact holds a path of this machine")
    return data


def main():
    """Export everything that the job asks for."""
    job = json.loads((JOB / "job.json").read_text())
    with (JOB / "log.jsonl").open("a") as log:

        def say(**entry):
            log.write(json.dumps(entry) + "\n")
            log.flush()

        for index, program in enumerate(job["programs"]):
            name = program["name"]
            say(begun=index, program=name, target="")
            try:
                data = exported(name[len("jax_") :], program["spellings"][0])
            except Exception as error:
                say(program=name, target="", refused=str(error).strip().split("\n")[0][:200])
                continue
            (JOB / str(index)).write_bytes(data)
            target = data[data.index(b"_v") + 2 : data.index(b"\0", 5)].decode()
            say(program=name, target=target, written=str(index))


main()
