"""Read artifacts with the compiler of a plugin of PJRT, for devices that need not be there. Plugins write none."""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

import os
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from frames import Refusal, serve
from pjrt import Plugin, PluginError

#: The libraries of packages, of which an environment has one.
LIBRARIES = {
    "libtpu": "libtpu/libtpu.so",
    "jax-cuda12-pjrt": "jax_plugins/xla_cuda12/xla_cuda_plugin.so",
    "jax-cuda13-pjrt": "jax_plugins/xla_cuda13/xla_cuda_plugin.so",
}
#: How plugins say that they do not read a program, as opposed to what their compilers refuse later.
UNREAD = (
    "failed to deserialize",
    "failed to parse",
    "failed to legalize",
    "failed to convert",
    "invalid mlir module",
    "is newer than the current version",
)
_loaded: list[Plugin] = []


def library() -> tuple[Path, dict[str, str]]:
    """Return the plugin, and the versions of its package: the one named on the command line, or the installed one."""
    if len(sys.argv) > 2:
        return Path(sys.argv[2]), {}
    for name, file in LIBRARIES.items():
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        return Path(str(found.locate_file(file))), {name: found.version}
    raise Refusal("read", "this environment has no plugin")


def plugin() -> Plugin:
    if not _loaded:
        # Without these, libtpu asks the machine's metadata server, and looks for other hosts.
        os.environ.update(TPU_SKIP_MDS_QUERY="1", TPU_WORKER_HOSTNAMES="localhost", TPU_STDERR_LOG_LEVEL="2")
        os.environ.setdefault("TPU_ACCELERATOR_TYPE", "v5litepod-4")
        _loaded.append(Plugin(library()[0]))
    return _loaded[0]


def describe() -> tuple[dict[str, Any], list[bytes]]:
    said = plugin().attributes()
    versions = {
        name: ".".join(map(str, said[f"stablehlo_{key}_version"])) if f"stablehlo_{key}_version" in said else None
        for name, key in (("stablehlo", "current"), ("minimum", "minimum"))
    }
    return {"packages": library()[1], "windows": {}, "interface": list(plugin().interface), **versions}, []


def options(replicas: int, partitions: int) -> bytes:
    """Return a CompileOptionsProto (``xla/pjrt/proto/compile_options.proto``) for so many devices."""

    def number(field: int, value: int) -> bytes:
        return bytes([field << 3, value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14])

    build = number(4, replicas) + number(5, partitions)
    if partitions > 1:
        build += bytes([6 << 3, 1])  # use_spmd_partitioning
    return bytes([3 << 3 | 2, len(build)]) + build


def compile_(
    program: bytes,
    topology: str,
    options: dict[str, str],
    replicas: int = 1,
    partitions: int = 1,
    optimized: bool = False,
) -> tuple[dict[str, Any], list[bytes]]:
    """Compile for the devices of a topology; return bytes of memory, costs, and the optimized program on request."""
    used = plugin()
    try:
        with used.topology(topology, options) as devices:
            if used.devices(devices) < replicas * partitions:
                raise Refusal("compile", f"{topology} has {used.devices(devices)} devices, not {replicas * partitions}")
            with used.compiled(devices, program, compile_options(replicas, partitions)) as made:
                said = {"memory": used.memory(made), "costs": used.costs(made)}
                return said, [used.optimized(made)] if optimized else []
    except PluginError as error:
        unread = any(each in str(error).lower() for each in UNREAD)
        raise Refusal("read" if unread else "compile", str(error)) from None


compile_options = options


def read(artifact: bytes, text: bool = False, **described: Any) -> tuple[str, list[bytes]]:
    compile_(artifact, **described)
    return "", []


if __name__ == "__main__":
    serve({"describe": describe, "read": read, "compile": compile_})
