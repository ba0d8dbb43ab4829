"""Table of the integrations that export frameworks' programs."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, Unpack

from vhlo_tools.artifact import Artifact
from vhlo_tools.errors import InvalidInputError, InvalidProgramError
from vhlo_tools.files import Kind, identify
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.files import JaxExport
    from vhlo_tools.integrations import ExportedModel
    from vhlo_tools.program import ExportOptions, ProgramSource
    from vhlo_tools.version import Version

Weights = Literal["constants", "arguments"]


@dataclass(frozen=True, slots=True)
class Frontend:
    """The exporter of a framework's programs."""

    module: str  # in vhlo_tools.integrations
    function: str  # takes a path, bytes or an object of the framework, a target, ``weights`` and ``options``
    options: tuple[str, ...] = ()


#: The exporter for each kind of framework program. A new kind needs a new line here, and one in `formats.source` or a
#: signature in `formats.recognition`.
FRONTENDS: Final[dict[Kind, Frontend]] = {
    Kind.TORCH_EXPORT: Frontend(
        "torch", "open_model", options=("importer", "import_timeout", "import_memory", "verify")
    ),
    Kind.SAVED_MODEL: Frontend("tensorflow", "open_saved_model", options=("signature", "batch_size", "verify")),
    Kind.JAX_LOWERED: Frontend("jax_functions", "open_lowered"),
}


def export_model(
    program: ProgramSource,
    target: str | Version = "current",
    *,
    weights: Weights = "constants",
    name: str | None = None,
    signature: str | None = None,
    batch_size: int | None = None,
    importer: str | None = None,
    import_timeout: float | None = None,
    import_memory: int | None = None,
    verify: bool | None = None,
    **options: Unpack[ExportOptions],
) -> ExportedModel:
    """Export a framework's program, with names for the arguments of its ``main``.

    The options are those of :func:`vhlo_tools.serialize`; one that does not apply to the framework is an
    ``InvalidInputError``. ``weights`` are constants, or arguments after the inputs.
    """
    source = identify(program, name)
    kind, called = source.kind, source.name or "the program"
    if kind is None or kind not in FRONTENDS:
        raise InvalidProgramError(
            f"{called} is not a framework's program ({', '.join(FRONTENDS)}): weights, signature and batch size "
            f"cannot be chosen; `vhlo constants externalize` replaces the constants of an artifact by arguments"
        )
    own: dict[str, Any] = {"signature": signature, "batch_size": batch_size, "importer": importer}
    own |= {"import_timeout": import_timeout, "import_memory": import_memory, "verify": verify}
    given = {option: value for option, value in own.items() if value is not None}
    for option in given:
        if option not in FRONTENDS[kind].options:
            having = ", ".join(each for each, frontend in FRONTENDS.items() if option in frontend.options)
            flag = option.replace("_", "-")
            raise InvalidInputError(f"{called} is a {kind}, which does not support --{flag}: only {having} does")
    return _export(kind, source.given, target, weights=weights, name=name, **given, **options)


def as_program(program: ProgramSource, *, name: str | None = None, **options: Unpack[ExportOptions]) -> ProgramSource:
    """Return a framework's program as an artifact of the newest version, and any other program as its source."""
    source = identify(program, name)
    if source.kind is None or source.kind not in FRONTENDS:
        return source
    return _export(source.kind, source.given, "current", weights="constants", name=name, **options).artifact


def as_artifact(program: ProgramSource, name: str | None = None) -> Artifact | None:
    """Return the artifact in ``program`` if it is an artifact or a jax.export file; otherwise ``None``."""
    source = identify(program, name)
    if isinstance(source.given, Artifact):
        return source.given
    if source.kind not in (Kind.PORTABLE_ARTIFACT, Kind.JAX_EXPORT) or source.data is None:
        return None
    return Artifact.open(source.data, name=source.name)


def as_container(program: ProgramSource, name: str | None = None) -> JaxExport | None:
    """Return the jax.export file in ``program`` if it is one, as a path or as bytes; otherwise ``None``."""
    source = identify(program, name)
    if source.kind is not Kind.JAX_EXPORT or source.data is None or isinstance(source.given, Artifact):
        return None
    # Imported here because few programs are such files.
    from vhlo_tools.files import decode_jax_export

    return decode_jax_export(source.data)


def _export(kind: Kind, program: ProgramSource, target: str | Version, **options: Any) -> ExportedModel:
    frontend = FRONTENDS[kind]
    module = import_module(f"vhlo_tools.integrations.{frontend.module}")
    exporter: Callable[..., ExportedModel] = getattr(module, frontend.function)
    return exporter(program, target, **options)
