"""Inlining of constants in resources of a module."""

from __future__ import annotations

from typing import Final

from vhlo_tools.bindings import ModuleOp, Provider, class_of, leaves, named_attributes
from vhlo_tools.bytecode import decode, encode, inline_resources
from vhlo_tools.errors import InvalidProgramError, MalformedArtifactError
from vhlo_tools.rewriting import Notes

_SIGN: Final = "dense_resource<"


def inlined(provider: Provider, module: ModuleOp, notes: Notes) -> ModuleOp:
    """The bindings cannot read resources: the module goes through bytecode, which has a section for them."""
    found = 0
    for op in provider.walk(module):
        for name, attribute in named_attributes(op.attributes):
            for each in leaves(attribute):
                # Resources have no class in the bindings; what has a class may be a large constant, and is not printed.
                if class_of(each) == "Attribute" and (text := str(each)).startswith(_SIGN):
                    found += 1
                    notes.add(op, f"the {name} of {op.name} was in a resource of the module, {text}, and was inlined")
    if not found:
        return module
    file = decode(b"".join(provider.bytecode(module, provider.library.current)))
    try:
        inline_resources(file)
    except MalformedArtifactError as error:
        raise InvalidProgramError(
            f"{notes.program} contains a resource that does not match its type: {error}"
        ) from error
    # Released to limit the number of copies of large constants.
    data = encode(file)
    del file
    return provider.parse(module.context, data)
