"""What the compiler of an accelerator makes of a program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from vhlo_tools.aliasing import Alias, AliasConfig, Donor, compiled_aliases, format_index
from vhlo_tools.artifact import Artifact
from vhlo_tools.errors import ReleaseEnvironmentError
from vhlo_tools.files import HloHeader, find_hlo_module, read_hlo_module, view
from vhlo_tools.printable import printable
from vhlo_tools.records import dataclass
from vhlo_tools.releases.process import Answer

#: What is asked of an analysis of costs, by the names of XLA.
_COSTS: Final = MappingProxyType({"flops": "flops", "bytes_accessed": "bytes accessed"})


@dataclass(frozen=True, slots=True)
class CompiledAlias:
    """What a compiler made of an alias or a donor that a program declares.

    Attributes:
        declared: The alias, or the donor.
        output_index: The index of the output that has the memory of the input; ``None`` if none has.
        reason: Why it was not kept, or was given to another output than declared; empty otherwise.
    """

    declared: Alias | Donor
    output_index: tuple[int, ...] | None
    reason: str = ""

    def __str__(self) -> str:
        index = getattr(self.declared, "output_index", None)
        what = "the donor" if index is None else f"the alias of output {format_index(index)} with"
        inside = f" at {format_index(self.declared.parameter_index)}" if self.declared.parameter_index else ""
        return f"{what} parameter {self.declared.parameter_number}{inside}"

    @property
    def kept(self) -> bool:
        """Whether the memory of the input is used for an output, of an alias for its own."""
        return self.output_index is not None and self.output_index == getattr(
            self.declared, "output_index", self.output_index
        )


@dataclass(frozen=True, slots=True)
class Compilation:
    """A program that the compiler of an accelerator compiled for devices that need not be there.

    Attributes:
        program: The name of the program.
        release: The release, with the device: ``libtpu==0.0.52@v5e:2x2``.
        aliases: What became of each alias and donor, in the order of the parameters; ``None`` if the plugin does not
            give its optimized program.
        memory: Bytes on each device, by ``code``, ``arguments``, ``results``, ``aliased``, ``temporary`` and, of newer
            plugins, ``peak``; ``None`` if the plugin does not say.
        costs: ``flops`` and ``bytes_accessed`` of one execution on one device, as far as the plugin says.
        hlo: The optimized program, a serialized HloModuleProto; ``None`` if the plugin does not give it.
        seconds: How long it took.
    """

    program: str
    release: str
    aliases: tuple[CompiledAlias, ...] | None
    memory: Mapping[str, int] | None
    costs: Mapping[str, float]
    hlo: bytes | None
    seconds: float

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield what there is to say, as topic and text; aliases that were lost follow those that were kept."""
        lost = self.lost
        number = len(self.aliases or ())
        if self.aliases is None:
            yield "aliases", "the compiler does not say"
        else:
            yield "aliases", f"{number - len(lost)} of {number} kept" if number else "none declared"
        yield from (("", printable(f"lost: {each}: {each.reason}")) for each in lost)
        if self.memory is None:
            yield "memory", "the compiler does not say"
        else:
            # What is zero for all programs without host memory.
            shown = {name: size for name, size in self.memory.items() if size or not name.startswith("host_")}
            yield "memory", ", ".join(f"{name.replace('_', ' ')} {size:,}" for name, size in shown.items()) + " bytes"
        costs = [f"{name.replace('_', ' ')} {value:,.0f}" for name, value in self.costs.items()]
        yield "costs", ", ".join(costs) or "the compiler does not say"
        yield "compiled in", f"{self.seconds:.1f} s"

    @property
    def lost(self) -> tuple[CompiledAlias, ...]:
        """The aliases and donors that the compiler is known not to have kept."""
        return tuple(each for each in self.aliases or () if not each.kept)

    @property
    def device_memory(self) -> int | None:
        """Bytes that each device needs: code, arguments, what is temporary, and results that are no arguments."""
        if self.memory is None:
            return None
        held = sum(self.memory.get(name, 0) for name in ("code", "arguments", "results", "temporary"))
        return held - self.memory.get("aliased", 0)


def compilation_of(release: str, artifact: Artifact, answer: Answer) -> Compilation:
    """``answer`` is that of a compiler that succeeded, with the optimized program.

    Raises ``ReleaseEnvironmentError`` if that is not HLO.
    """
    said: Any = answer.value
    hlo, kept = None, None
    for optimized in answer.parts:
        found = find_hlo_module(view(optimized))
        if found is None:
            raise ReleaseEnvironmentError(f"{release} gives its optimized program in another form than HLO")
        hlo, kept = bytes(found), _kept(artifact.aliases(), read_hlo_module(found))
    costs = {name: said["costs"][key] for name, key in _COSTS.items() if said["costs"] and key in said["costs"]}
    return Compilation(artifact.name, release, kept, said["memory"], costs, hlo, answer.seconds)


def _kept(declared: AliasConfig, compiled: HloHeader) -> tuple[CompiledAlias, ...]:
    given = {(each.parameter_number, each.parameter_index): each.output_index for each in compiled.aliases}
    # What the rules of XLA make of them, on every backend.
    expected = {(each.parameter_number, each.parameter_index) for each in compiled_aliases(declared)}
    found = []
    entries: list[Alias | Donor] = [*declared.aliases, *declared.donors]
    for each in sorted(entries, key=lambda one: (one.parameter_number, one.parameter_index)):
        key = each.parameter_number, each.parameter_index
        output, wanted = given.get(key), getattr(each, "output_index", None)
        reason = ""
        if output is None:
            reason = "no output is given the memory of the parameter"
            if key not in expected:
                reason += ": none that is left has as many bytes"
        elif isinstance(each, Alias) and output != wanted:
            reason = f"another output is given the memory of the parameter: {format_index(output)}"
        found.append(CompiledAlias(each, output, reason))
    return tuple(found)
