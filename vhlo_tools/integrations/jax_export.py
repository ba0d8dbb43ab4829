"""Functions of JAX as portable artifacts, and as files of ``jax.export``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import field
from datetime import date
from os import PathLike
from typing import Any, Final, Literal

from vhlo_tools.artifact import JaxContainer
from vhlo_tools.errors import InvalidProgramError
from vhlo_tools.integrations.exported_model import ExportedModel
from vhlo_tools.integrations.extras import require_extra
from vhlo_tools.integrations.jax_calls import JaxOptions, export_call, jitted_as_called
from vhlo_tools.integrations.jax_targets import resolved_target
from vhlo_tools.records import dataclass
from vhlo_tools.spec import Release
from vhlo_tools.version import Version

_REGISTRATION: Final = re.compile(r"unregistered type `<class '([^']+)'>`")


@dataclass(frozen=True, slots=True)
class JaxProgram(ExportedModel):
    """A function of JAX as a portable artifact, and as ``jax.export`` keeps it.

    ``save`` writes the artifact and the weights; ``save_jax_export`` a file for ``jax.export.deserialize``.
    """

    #: Exports the function with ``jax.export`` as it was called, at the version that jax chooses.
    jax_export: Callable[[], Any] = field(repr=False, compare=False, default=lambda: None)
    version: Version | None = None  # of the artifacts in a jax.export file; None for jax's choice
    vjp_order: int = 0  # the number of derivatives in such a file
    consumers: tuple[Release, ...] = ()  # the releases that the target names

    @property
    def exported(self) -> Any:
        """The ``jax.export.Exported``, which has the constants as they are in the function."""
        return self.jax_export()

    @property
    def container(self) -> JaxContainer:
        """The jax.export file, with the artifacts at the requested version.

        Its ``findings`` contain a warning if the target names a release of jax that does not read such files.
        """
        require_extra("jax", "writing a jax.export file", "flatbuffers")
        exported = self.exported
        try:
            data = bytes(exported.serialize(vjp_order=self.vjp_order))
        except ValueError as error:
            if found := _REGISTRATION.search(str(error)):
                raise InvalidProgramError(_unregistered(str(exported.fun_name), found[1])) from error
            raise
        container = JaxContainer(data, name=str(exported.fun_name)).checked_for(self.consumers)
        if self.version is not None and self.version != container.version:
            container = container.retargeted(self.version)
        return container

    @property
    def serialized(self) -> bytes:
        return bytes(self.container)

    def save_jax_export(self, path: str | PathLike[str], *, force: bool = False) -> JaxContainer:
        """Write a jax.export file, which ``jax.export.deserialize`` reads.

        Args:
            path: The file.
            force: Whether an existing file may be replaced.

        Returns:
            The file, with findings about its consumers.

        Raises:
            FileExistsError: If ``path`` exists and ``force`` is not set.
            MissingExtraError: If flatbuffers is not installed.
            InvalidProgramError: If jax cannot serialize a type in the arguments or results; with what registers it.
            OSError: If the file cannot be written.
        """
        container = self.container
        container.save(path, force=force)
        return container


def export(
    fn: Callable[..., Any],
    *,
    target: str | Version | None = None,
    weights: Literal["constants", "arguments"] = "constants",
    donate_argnums: int | Sequence[int] = (),
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[Any] = (),
    vjp_order: int = 0,
    as_of: date | None = None,
    provider: str | None = None,
) -> Callable[..., JaxProgram]:
    """Return a function that exports ``fn`` for the arguments with which it is called, as ``jax.export.export`` does.

    Arguments and results may be any pytrees; their types need no registration. Leaves that are no arrays, such as
    functions in modules of Equinox, are part of the program. Donated arguments are marked in the artifact if an output
    can use their memory; its findings contain the donations that jax dropped. Mistakes in ``fn`` and its arguments are
    reported by jax itself.

    >>> program = export(step, target="1.0.0", donate_argnums=0)(params, batch)  # doctest: +SKIP

    Args:
        fn: The function; one made by ``jax.jit`` keeps its settings.
        target: In the target grammar; by default the version that jax writes.
        weights: Whether arrays over which ``fn`` closes are constants of the artifact, or arguments after the inputs,
            named by their variables and paths in pytrees: ``params.dense.kernel``.
        donate_argnums: The indices of the donated positional arguments.
        static_argnums: The indices of positional arguments that are part of the program, as for ``jax.jit``.
        static_argnames: The same for arguments by name.
        platforms: The platforms to lower it for, by default the one that jax runs on.
        disabled_checks: The ``jax.export.DisabledSafetyCheck`` to omit.
        vjp_order: The number of derivatives in a jax.export file.
        as_of: The day from which windows in ``target`` count back, by default today.
        provider: The bindings that define ``current``, ``WEEK_4`` and similar targets.

    Raises:
        MissingExtraError: If jax is not installed.
        UnknownTargetError: If the target is unknown.
        InvalidVersionError: If the target looks like a version but is not valid.

    The returned function takes the arguments of ``fn``, or ``jax.ShapeDtypeStruct`` instead, also with symbolic
    dimensions, and raises ``DowngradeError`` if the program needs a feature newer than the target, and
    ``UnsupportedFeatureError`` if no artifact can represent it, such as callbacks to Python.
    """
    require_extra("jax", "exporting a function of JAX", "jax")
    resolved = None if target is None else resolved_target(target, as_of, provider)
    version = resolved.version if resolved else None
    options = JaxOptions(
        fn,
        _numbers(donate_argnums),
        _numbers(static_argnums),
        (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames),
        platforms,
        tuple(disabled_checks),
    )

    def exporter(*args: Any, **kwargs: Any) -> JaxProgram:
        call = export_call(options, args, kwargs, version, provider, hoisted=weights == "arguments")

        def exported() -> Any:
            if call.is_direct:
                return call.exported
            import jax.export

            made = jax.export.export(jitted_as_called(options), platforms=platforms, disabled_checks=disabled_checks)
            try:
                return made(*args, **kwargs)
            except TypeError as error:
                said = str(error).partition("\n")[0]
                raise InvalidProgramError(
                    f"{options.name} cannot be in a jax.export file, only in an artifact: {said}"
                ) from error

        consumers = resolved.consumers if resolved else ()
        parts = (call.artifact, call.inputs, call.outputs, call.weights)
        return JaxProgram(*parts, exported, version, vjp_order, consumers)

    return exporter


def _numbers(numbers: int | Sequence[int]) -> tuple[int, ...]:
    return (numbers,) if isinstance(numbers, int) else tuple(numbers)


def _unregistered(name: str, kind: str) -> str:
    """Name the line that registers a type which jax cannot serialize."""
    short = kind.rpartition(".")[2]
    return (
        f"{name} takes or returns a {kind}, which jax cannot write into a jax.export file: register it first, with "
        f"jax.export.register_namedtuple_serialization({short}, serialized_name={kind!r}) if it is a named tuple, or "
        f"else with jax.export.register_pytree_node_serialization({short}, serialized_name={kind!r}, "
        f"serialize_auxdata=..., deserialize_auxdata=...); the artifact needs no registration"
    )
