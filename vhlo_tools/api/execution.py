"""Programs run: numpy in, numpy out, with buffers given away or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from vhlo_tools.api.frontends import as_program

if TYPE_CHECKING:
    from vhlo_tools.interpreter import Donate, Executable, Handler, Probe
    from vhlo_tools.program import ProgramSource

__all__ = ["ENGINE_CHOICES", "EngineChoice", "load_executable", "run"]

EngineChoice = Literal["auto", "reference", "xla"]
ENGINE_CHOICES: Final = get_args(EngineChoice)


def load_executable(
    program: ProgramSource,
    *,
    engine: EngineChoice = "auto",
    handlers: Mapping[str, Handler] | None = None,
    name: str | None = None,
    provider: str | None = None,
    trusted: bool = False,
) -> Executable:
    """Load a program once, to run it often, and to learn what its runs do with memory.

    >>> import vhlo_tools as vt
    >>> program = '''func.func @main(%a: tensor<2xf32> {tf.aliasing_output = 0 : i32}) -> tensor<2xf32> {
    ...   %0 = stablehlo.add %a, %a : tensor<2xf32>
    ...   return %0 : tensor<2xf32>
    ... }'''
    >>> execution = vt.load_executable(program).execute([vt.Buffer([1, 2])], donate=(0,))

    Args:
        program: Anything that :func:`serialize` takes.
        engine: As for :func:`run`.
        handlers: As for :func:`run`.
        name: What to call the program in messages, by default its path.
        provider: The bindings to use, by default those of the module, or the installed ones.
        trusted: Whether MLIR may parse an artifact or bytecode in this process at once, as for :func:`serialize`.

    Raises:
        AliasError: If the program has aliases or donors that XLA refuses.
        InvalidProgramError: If it is no valid program, or has no ``main``.
        EngineError: If it takes or gives what has no form in numpy.
        MalformedArtifactError: If it is a damaged artifact.
        ProviderError: If what the engine needs is not installed.
    """
    from vhlo_tools.interpreter import Executable, choose_executable
    from vhlo_tools.program import load_program

    if engine not in ENGINE_CHOICES:
        raise ValueError(f"{engine!r} is not an engine: expected one of {', '.join(ENGINE_CHOICES)}")
    program = as_program(program, name=name, provider=provider)
    loaded = load_program(program, name=name, provider=provider, trusted=trusted)
    if engine == "auto":
        return choose_executable(loaded, handlers)
    return Executable(loaded, engine, "as asked for", handlers)


def run(
    program: ProgramSource,
    inputs: Sequence[Any],
    *,
    engine: EngineChoice = "auto",
    donate: Donate = (),
    timeout: float | None = None,
    handlers: Mapping[str, Handler] | None = None,
    probe: Probe | None = None,
    name: str | None = None,
    provider: str | None = None,
    trusted: bool = False,
) -> tuple[Any, ...]:
    """Evaluate the function ``main`` of a program.

    An input is *given away* with ``donate``, or by a :class:`Buffer` that says so. If an output is aliased with it,
    the output is written over it: on ``reference`` in the memory of the array or of the buffer, on ``xla`` in that of
    the device. The buffer is then deleted. An input that has an alias and is not given away, or that something else
    refers to, is protected by a copy. :func:`load_executable` gives runs that report all this.

    Args:
        program: Anything that :func:`serialize` takes.
        inputs: For each argument of ``main`` an array of its element type and shape, or a :class:`Buffer`; for a tuple
            a sequence of these. Python numbers and lists take the element type of the argument.
        engine: ``reference`` is StableHLO's reference interpreter, ``xla`` is XLA for the CPU; ``auto`` takes the
            interpreter for what it can run and is small, and XLA for the rest, and the report of a run says why.
        donate: The numbers of the inputs that are given away; ``(number, index)`` is a part of a tuple. An array that
            is no buffer must be writable and contiguous and own its memory, or it is copied.
        timeout: How many seconds ``reference`` may take, by default ten minutes; nothing ends ``xla``.
        handlers: Functions that compute custom calls, by the targets of these. One is called with the call, a
            :class:`CustomCall`, and an array for each operand, which it must not change; it returns an array for each
            result: one alone, or a sequence.
        probe: What keeps intermediate values, on ``reference``, which ``auto`` then takes.
        name: What to call the program in messages, by default its path.
        provider: The bindings to use, by default those of the module, or the installed ones.
        trusted: Whether MLIR may parse an artifact or bytecode in this process at once, as for :func:`serialize`.

    Returns:
        The results, one array for each, for a tuple a tuple. Those of ``xla`` are read-only.

    Raises:
        InvalidInputError: If the inputs do not fit.
        BufferDeletedError: If an input was given away before.
        AliasError: If the aliases of the program are wrong, or an input that must be aliased is not given away.
        EngineError: If the program holds what the engine cannot run, or fails.
        EngineCrashError: If it ends the process that the interpreter runs in, which is none of the caller's.
        EngineTimeoutError: If it takes longer than it may.
        InvalidProgramError: If it is no valid program.
        MalformedArtifactError: If it is a damaged artifact.
    """
    if not isinstance(inputs, Sequence):
        raise TypeError(
            f"inputs must be a sequence with one array for each argument, not a {type(inputs).__qualname__}"
        )
    if probe is not None and engine == "auto":
        engine = "reference"
    executable = load_executable(
        program, engine=engine, handlers=handlers, name=name, provider=provider, trusted=trusted
    )
    return executable.run(inputs, donate=donate, timeout=timeout, probe=probe)
