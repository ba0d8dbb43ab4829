"""The only package that imports MLIR: providers, contexts and diagnostics.

A *provider* is an import prefix under which somebody ships the MLIR and StableHLO bindings. Objects of one provider
mean nothing to another; only bytes may cross.
"""

from vhlo_tools.bindings.attributes import class_of, elements_of, leaves, named_attributes
from vhlo_tools.bindings.diagnostics import source_of
from vhlo_tools.bindings.ir import Attribute, Context, Module, ModuleOp, Operation
from vhlo_tools.bindings.provider import MLIRFailure, Provider
from vhlo_tools.bindings.providers import get_provider, provider_of

__all__ = [
    "Attribute",
    "Context",
    "MLIRFailure",
    "Module",
    "ModuleOp",
    "Operation",
    "Provider",
    "class_of",
    "elements_of",
    "get_provider",
    "leaves",
    "named_attributes",
    "provider_of",
    "source_of",
]
