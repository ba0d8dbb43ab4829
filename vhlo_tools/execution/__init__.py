"""Evaluation of programs on numpy arrays by the engines reference, xla and iree, with or without donation."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.execution.donation import (
        Buffer,
        DonationWarning,
        OutputReport,
        Placement,
        RunReport,
        UnusableDonation,
    )
    from vhlo_tools.execution.engine_selection import choose_executable
    from vhlo_tools.execution.executable import Donate, Executable, Execution
    from vhlo_tools.execution.handlers import CustomCall, Handler
    from vhlo_tools.execution.known_faults import KNOWN_FAULTS, KnownFault
    from vhlo_tools.execution.known_targets import RULES
    from vhlo_tools.execution.op_traits import CONTROL_FLOW, OP_TRAITS, DomainKind, OpTraits, ops_where
    from vhlo_tools.execution.parallel_executable import ParallelExecutable
    from vhlo_tools.execution.probes import ARGUMENT, Probe, ProbedValue, ProbeSite, location_text, read_probes
    from vhlo_tools.execution.protocols import EngineName
    from vhlo_tools.execution.reference.engine import evaluate
    from vhlo_tools.execution.reference.known_calls import is_near, ulp_difference
    from vhlo_tools.execution.stepping.stepper import Stepper, run_programs
    from vhlo_tools.execution.values import (
        ArgumentType,
        TupleType,
        as_saved,
        bind_first_argument,
        main_of,
        nested_values,
        parse_tensor_type,
        parse_value_type,
        retype_main,
    )
else:
    __getattr__, __dir__ = lazy_exports(__name__)
