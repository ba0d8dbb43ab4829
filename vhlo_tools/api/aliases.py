"""Reading and changing the aliases and donors of programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from vhlo_tools.api.conversion import serialize
from vhlo_tools.api.frontends import as_artifact, export_model
from vhlo_tools.artifact import JaxContainer, matching_calls
from vhlo_tools.errors import AliasError
from vhlo_tools.files import Kind, identify

if TYPE_CHECKING:
    from vhlo_tools.aliasing import Alias, AliasConfig, CallAliases, Declared, Form
    from vhlo_tools.artifact import Artifact
    from vhlo_tools.program import ProgramSource


def aliased_artifact(program: ProgramSource, *, name: str | None = None, provider: str | None = None) -> Artifact:
    """Return the artifact of a program, or a new one, with its aliases unchecked; an artifact needs no MLIR."""
    source = identify(program, name)
    if source.kind is Kind.SAVED_MODEL:
        # Variables can be aliased only if they are arguments.
        return export_model(source, weights="arguments", name=name, provider=provider).artifact
    artifact = as_artifact(source)
    if artifact is None:
        artifact = serialize(source, alias_lint=False, allow_other_dialects=True, name=name, provider=provider)
    return artifact


def with_aliases(
    opened: Artifact | JaxContainer, change: Callable[[Declared], AliasConfig], form: Form | None = None
) -> Artifact | JaxContainer:
    """Return an artifact, or a jax.export file with the artifact of its function, with changed aliases.

    Constants are not copied. The artifacts of saved derivatives do not change, because their arguments differ.

    ``change`` makes the new aliases of the declared ones; ``form`` is by default their present form, or else one that
    can represent them.
    """

    def edit(own: Artifact) -> Artifact:
        said = own.declared_aliases()
        try:
            return own.with_aliases(change(said.declared), form)
        except AliasError as error:
            if said.function is None:
                raise AliasError(f"{own.name} has no function main, so it cannot have aliases") from error
            raise

    return _edited(opened, edit)


def with_call_aliases(
    opened: Artifact | JaxContainer, call: str, change: Callable[[CallAliases], Iterable[Alias]]
) -> Artifact | JaxContainer:
    """As :func:`with_aliases`, for the custom call of a path, or all calls of a target."""

    def edit(own: Artifact) -> Artifact:
        calls = matching_calls(own.custom_calls(), call)
        return own.with_call_aliases({each.path: change(each) for each in calls})

    return _edited(opened, edit)


def _edited(opened: Artifact | JaxContainer, edit: Callable[[Artifact], Artifact]) -> Artifact | JaxContainer:
    if isinstance(opened, JaxContainer):
        own = opened.artifacts[0]
        return opened.with_artifacts(lambda each: edit(each) if each is own else each)
    return edit(opened)
