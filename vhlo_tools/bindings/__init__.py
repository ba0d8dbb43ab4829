"""Access to MLIR: providers, contexts and diagnostics. No other package imports MLIR.

A *provider* is an import prefix under which a distribution ships the MLIR and StableHLO bindings. Objects of one
provider are invalid in another; only bytes can be exchanged.
"""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.bindings.attributes import (
        argument_number,
        class_of,
        elements_of,
        leaves,
        location_kind,
        named_attributes,
        names_without_class,
        relocate_arguments,
        result_number,
    )
    from vhlo_tools.bindings.diagnostics import source_of
    from vhlo_tools.bindings.foreign import ForeignProgram
    from vhlo_tools.bindings.functions import CALLEES, function_of, functions_of, inline_calls
    from vhlo_tools.bindings.iree import compile_with_iree, iree_version, load_with_iree, require_iree
    from vhlo_tools.bindings.mlir import Attribute, Context, Module, ModuleOp, Operation
    from vhlo_tools.bindings.parse_check import PARSE_ONCE, TRIAL
    from vhlo_tools.bindings.plugins import load_with_plugin
    from vhlo_tools.bindings.provider import MLIRFailure, Provider
    from vhlo_tools.bindings.providers import (
        NARROW_ELEMENTS,
        PARTS,
        PROVIDERS,
        explain_unknown,
        get_provider,
        missing_part,
        provider_of,
    )
    from vhlo_tools.bindings.toolbox import FilePosition, MlirSession, Remark
    from vhlo_tools.bindings.xla import XlaFailure, refined_by_xla
    from vhlo_tools.bindings.xla_client import (
        CALLBACK_TARGET,
        DeviceArgument,
        ExecutionResult,
        XlaArray,
        approx_top_k_size,
        is_lapack,
        missing_routine,
        put_on_device,
        register_lapack,
    )
    from vhlo_tools.bindings.xla_processes import IsolatedArray, IsolatedXlaProgram, put_isolated
    from vhlo_tools.bindings.xla_server import Devices, XlaSource, compiled
else:
    __getattr__, __dir__ = lazy_exports(__name__)
