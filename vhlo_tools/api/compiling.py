"""What the compiler of an accelerator makes of a program, with no accelerator there."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Unpack

from vhlo_tools.aliasing import Alias, AliasConfig, Donor, compiled_aliases
from vhlo_tools.api.conversion import retarget, serialize
from vhlo_tools.api.frontends import as_artifact
from vhlo_tools.api.releases import install_releases
from vhlo_tools.errors import InvalidProgramError, ReleaseEnvironmentError
from vhlo_tools.files import HloHeader, find_hlo_module, read_hlo_module, view
from vhlo_tools.program import LoadOptions, ProgramSource
from vhlo_tools.records import dataclass
from vhlo_tools.releases import Say, silent

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
        aliases: What became of each alias and donor, in the order of the parameters.
        memory: Bytes on each device, by ``code``, ``arguments``, ``results``, ``aliased``, ``temporary`` and, of newer
            plugins, ``peak``; ``None`` if the plugin does not say.
        costs: ``flops`` and ``bytes_accessed`` of one execution on one device, as far as the plugin says.
        hlo: The optimized program, a serialized HloModuleProto.
        seconds: How long it took.
    """

    program: str
    release: str
    aliases: tuple[CompiledAlias, ...]
    memory: Mapping[str, int] | None
    costs: Mapping[str, float]
    hlo: bytes
    seconds: float


def compile_for(
    program: ProgramSource,
    release: str,
    *,
    target: str | None = None,
    say: Say = silent,
    **options: Unpack[LoadOptions],
) -> Compilation:
    """Compile a program for an accelerator, with the compiler of a real release, in an environment of its own.

    >>> import vhlo_tools as vt
    >>> compiled = vt.compile_for("examples/saxpy.mlir", "libtpu==0.0.52@v5e")  # doctest: +SKIP
    >>> compiled.memory["temporary"]  # doctest: +SKIP
    0

    Args:
        program: Anything that :func:`vhlo_tools.serialize` accepts.
        release: The release of a plugin, and the device: ``libtpu==0.0.52@v5e:2x2`` or
            ``jax-cuda13-pjrt==0.12.0.1@h100``; without a device, one of its kind, or as many as the program is for.
        target: The version to write for; by default what the release reads. An artifact is compiled as it is.
        say: Is told if an environment is made.
        options: See :class:`vhlo_tools.program.LoadOptions`.

    Raises:
        DowngradeError: If the program needs features newer than the release reads.
        InvalidProgramError: If the compiler refuses the program, for the reason that it gives.
        ReleaseEnvironmentError: If the release cannot be had, is no compiler, or ends or hangs.
        VhloToolsError: If the program is not valid.
    """
    from vhlo_tools.releases import process_of

    artifact = as_artifact(program, options.get("name"))
    if artifact is None:
        artifact = serialize(program, target or release, **options)
    elif target is not None:
        artifact = retarget(artifact, target)
    install_releases([release], say)
    process = process_of(release)
    if process.release.kind.devices is None:
        raise ReleaseEnvironmentError(
            f"{release} is no compiler of accelerators: expected a release of libtpu, for one"
        )
    answer = process.compile(bytes(artifact), optimized=True)
    if answer.failed in ("crash", "timeout"):
        raise ReleaseEnvironmentError(f"{release} does not compile {artifact.name}: {answer.words}")
    if answer.failed:
        raise InvalidProgramError(f"{release} does not compile {artifact.name}: {answer.words}")
    said: Any = answer.value
    (optimized,) = answer.parts
    found = find_hlo_module(view(optimized))
    if found is None:
        raise ReleaseEnvironmentError(f"{release} gives its optimized program in another form than HLO")
    costs = {name: said["costs"][key] for name, key in _COSTS.items() if said["costs"] and key in said["costs"]}
    kept = _kept(artifact.aliases(), read_hlo_module(found))
    return Compilation(artifact.name, release, kept, said["memory"], costs, bytes(found), answer.seconds)


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
            reason = f"another output is given the memory of the parameter: {_index(output)}"
        found.append(CompiledAlias(each, output, reason))
    return tuple(found)


def _index(index: tuple[int, ...]) -> str:
    return f"{{{', '.join(map(str, index))}}}"
