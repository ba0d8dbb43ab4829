"""Aliases and donors of programs: what they say, and artifacts that say something else."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from vhlo_tools.aliasing import Alias, AliasConfig, CallAliases, Declared, Form
from vhlo_tools.api.checking import as_artifact
from vhlo_tools.api.frontends import export_model, framework_kind
from vhlo_tools.api.functions import serialize
from vhlo_tools.artifact import Artifact, JaxContainer, Kind
from vhlo_tools.artifact.call_aliases import matching_calls
from vhlo_tools.errors import AliasError

if TYPE_CHECKING:
    from vhlo_tools.program import ProgramSource

__all__ = ["aliased_artifact", "with_aliases", "with_call_aliases"]


def aliased_artifact(program: ProgramSource, *, name: str | None = None, provider: str | None = None) -> Artifact:
    """Return the artifact that a program is, holds or becomes, whose aliases are right or wrong.

    Args:
        program: Anything that :func:`vhlo_tools.serialize` takes; an artifact needs no MLIR.
        name: What to call it in messages, by default its path.
        provider: The bindings to use where they are needed.

    Raises:
        InvalidProgramError: If it is no valid program.
        MalformedArtifactError: If it is a damaged artifact.
        UnsupportedFeatureError: If it holds what no artifact can hold.
    """
    if framework_kind(program, name) is Kind.SAVED_MODEL:
        # Only a variable that is an argument can be written over.
        return export_model(program, weights="arguments", name=name, provider=provider).artifact
    artifact = as_artifact(program, name)
    if artifact is None:
        artifact = serialize(program, alias_lint=False, allow_other_dialects=True, name=name, provider=provider)
    return artifact


def with_aliases(
    opened: Artifact | JaxContainer, change: Callable[[Declared], AliasConfig], form: Form | None = None
) -> Artifact | JaxContainer:
    """Return an artifact, or a jax.export file around the artifact of its function, with other aliases.

    Constants are not copied. The artifacts of saved derivatives stay as they are: their arguments are others.

    Args:
        opened: The artifact or the file.
        change: Returns the aliases to have, of what is said of them now.
        form: Where to write the aliases; by default where they are, or else where they can be.

    Raises:
        AliasError: If ``form`` cannot say them, or ``change`` finds them wrong.
        MalformedArtifactError: If it is damaged.
    """

    def edit(own: Artifact) -> Artifact:
        said = own.declared_aliases()
        try:
            return own.with_aliases(change(said.declared), form)
        except AliasError as error:
            if said.function is None:
                raise AliasError(f"{own.name} has no function main, and so nothing to alias") from error
            raise

    return _edited(opened, edit)


def with_call_aliases(
    opened: Artifact | JaxContainer, call: str, change: Callable[[CallAliases], Iterable[Alias]]
) -> Artifact | JaxContainer:
    """Return an artifact, or a jax.export file likewise, with other aliases of its custom calls.

    Args:
        opened: The artifact or the file.
        call: The path of a call, or a target, for all calls of it.
        change: Returns the aliases that a call shall have.

    Raises:
        AliasError: If there is no such call, or one cannot have such aliases.
        MalformedArtifactError: If it is damaged.
    """

    def edit(own: Artifact) -> Artifact:
        calls = matching_calls(own.custom_calls(), call)
        return own.with_call_aliases({each.path: change(each) for each in calls})

    return _edited(opened, edit)


def _edited(opened: Artifact | JaxContainer, edit: Callable[[Artifact], Artifact]) -> Artifact | JaxContainer:
    if isinstance(opened, JaxContainer):
        own = opened.artifacts[0]
        return opened.with_artifacts(lambda each: edit(each) if each is own else each)
    return edit(opened)
