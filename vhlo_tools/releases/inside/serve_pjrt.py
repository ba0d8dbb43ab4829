"""Compile artifacts with a plugin of PJRT, for devices that need not be there. Plugins write none."""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from frames import Refusal, serve
from pjrt import Plugin, PluginError

#: How plugins say that they have read a program without a function to enter.
UNENTERED = "conversion requires module with `main` function"
#: How they say that they do not read a program, as opposed to what their compilers refuse later.
UNREAD = (
    "Failed to parse using StableHLO",
    "Failed to upgrade versioned StableHLO",
    "found in dialect ('vhlo') that does not allow unknown operations",
)


@cache
def plugin() -> Plugin:
    """The library is the second argument of the process, among the installed packages if it is no absolute path."""
    return Plugin(Path(sysconfig.get_path("purelib")) / sys.argv[2])


def describe() -> tuple[dict[str, Any], list[bytes]]:
    from importlib import metadata

    said = plugin().attributes()
    current, minimum = (said.get(f"stablehlo_{name}_version") for name in ("current", "minimum"))
    found = {each.metadata["Name"]: each.version for each in metadata.distributions()}
    return {
        "packages": found,
        "stablehlo": current and ".".join(map(str, current)),
        "minimum": minimum and ".".join(map(str, minimum)),
        "windows": {},
    }, []


def options_of(replicas: int, partitions: int, *, shardy: bool = False) -> bytes:
    """Return a CompileOptionsProto (``xla/pjrt/proto/compile_options.proto``) for so many devices."""

    def number(field: int, value: int) -> bytes:
        return bytes([field << 3 & 127 | 128, field >> 4, value & 127 | 128, value >> 7 & 127])

    # num_replicas, num_partitions, use_spmd_partitioning and use_shardy_partitioner of executable_build_options.
    build = number(4, replicas) + number(5, partitions) + number(6, int(partitions > 1)) + number(19, int(shardy))
    return bytes([3 << 3 | 2, len(build)]) + build


def read(program: bytes, topology: str, options: dict[str, str]) -> tuple[str, list[bytes]]:
    """Read a program without a function to enter, which is refused as such once it is read."""
    with described(topology, options) as place:
        try:
            with plugin().compiled(place, program, options_of(1, 1)):
                return "", []
        except PluginError as error:
            if UNENTERED in str(error):
                return "", []
            raise Refusal("read", str(error)) from None


@contextmanager
def described(topology: str, options: dict[str, str]) -> Iterator[int]:
    try:
        with plugin().topology(topology, options) as place:
            yield place
    except PluginError as error:
        raise Refusal("compile", f"it has no topology {topology} here: {error}") from None


def compile_program(
    program: bytes, topology: str, options: dict[str, str], devices: list[int], shardy: bool, optimized: bool
) -> tuple[dict[str, Any], list[bytes]]:
    """Return bytes of memory, and costs, as far as the plugin gives them; and the optimized HLO on request."""
    used = plugin()
    with described(topology, options) as place:
        if (number := used.devices(place)) < devices[0] * devices[1]:
            raise Refusal("compile", f"{topology} has {number} devices, and the program needs {devices}")
        try:
            with used.compiled(place, program, options_of(*devices, shardy=shardy)) as made:
                said = {"memory": given(used.memory, made), "costs": given(used.costs, made)}
                found = given(used.optimized, made) if optimized else None
                return said, [] if found is None else [found]
        except PluginError as error:
            step = "read" if any(each in str(error) for each in UNREAD) else "compile"
            raise Refusal(step, str(error)) from None


def given(ask: Callable[[int], Any], executable: int) -> Any:
    """Return nothing where a plugin does not say it."""
    try:
        return ask(executable)
    except PluginError:
        return None


serve({"describe": describe, "read": read, "compile": compile_program})
