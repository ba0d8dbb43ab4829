"""Constants in resources of the module become plain ones."""

from __future__ import annotations

from typing import Final

from vhlo_tools.bindings import ModuleOp, Provider, class_of, leaves, named_attributes
from vhlo_tools.bytecode import decode, encode
from vhlo_tools.bytecode.inlining import inline_resources
from vhlo_tools.errors import InvalidProgramError, MalformedArtifactError
from vhlo_tools.portable.notes import Notes

__all__ = ["inlined"]

_SIGN: Final = "dense_resource<"


def inlined(provider: Provider, module: ModuleOp, notes: Notes) -> ModuleOp:
    """Return ``module`` with the values of resources in its attributes; the module itself if there are none.

    The bindings cannot read resources, so it goes through bytecode, where they stand in a section of their own.

    Raises:
        InvalidProgramError: If a resource does not fit the type that it has where it is referred to.
    """
    found = 0
    for op in provider.walk(module):
        for name, attribute in named_attributes(op.attributes):
            for each in leaves(attribute):
                # The bindings have no class for them; what has one may be a large constant, and is not printed.
                if class_of(each) == "Attribute" and (text := str(each)).startswith(_SIGN):
                    found += 1
                    notes.add(op, f"the {name} of {op.name} stood in a resource of the module, {text}, and was inlined")
    if not found:
        return module
    file = decode(b"".join(provider.bytecode(module, provider.library.current)))
    try:
        inline_resources(file)
    except MalformedArtifactError as error:
        raise InvalidProgramError(f"{notes.program} holds a resource that does not fit: {error}") from error
    # Of large constants there are enough copies as it is.
    data = encode(file)
    del file
    return provider.parse(module.context, data)
