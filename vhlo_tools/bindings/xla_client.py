"""Programs compiled and run by jaxlib's client of XLA in this process."""

from __future__ import annotations

import ctypes
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol
from weakref import ref

from vhlo_tools.bindings.providers import get_provider, missing_part
from vhlo_tools.bindings.xla import BlockedJax, XlaFailure, allowing_jax
from vhlo_tools.errors import EngineError, MissingExtraError, ProviderError, installing
from vhlo_tools.records import dataclass
from vhlo_tools.system import after_fork

if TYPE_CHECKING:
    import numpy as np

# Run host callbacks with denormals enabled: XLA's threads flush denormals to zero

#: An upper bound of the size of ``fenv_t`` in any C library.
_SIZE: Final = 256


def _library() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL(None)
        for function in (library.fegetenv, library.fesetenv):
            function.argtypes = [ctypes.c_void_p]
    except (OSError, TypeError, AttributeError):
        return None
    return library


def _current() -> Any:
    environment = ctypes.create_string_buffer(_SIZE)
    if _LIBRARY is not None:
        _LIBRARY.fegetenv(environment)
    return environment


_LIBRARY: Final = _library()
#: The environment of the thread that imports this module, which is not a thread of XLA.
_OF_PYTHON: Final = _current()


def with_all_floats(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``function``, for calls from XLA's threads, with the floating-point environment of Python's threads."""
    library = _LIBRARY
    if library is None:
        return function

    def called(*arguments: Any) -> Any:
        before = _current()
        library.fesetenv(_OF_PYTHON)
        try:
            return function(*arguments)
        finally:
            library.fesetenv(before)

    return called


# XLA's CPU client, through jaxlib alone: compilation, arrays on the device, and execution
#
# ``jaxlib.xla_client`` and ``jaxlib._jax`` are private to jaxlib; the functions used here are the same from 0.8.1 to
# 0.12 except where noted. jax is not needed, and is not imported: see :mod:`vhlo_tools.bindings.xla`.

#: The shape and the element type of an array.
ArrayType = tuple[tuple[int, ...], "np.dtype[Any]"]

#: A Python function that computes a custom call: it takes an array for each operand and returns one for each result,
#: ``None`` for a token.
Callback = Callable[..., tuple[Any, ...]]

#: The target of custom calls that are computed by a Python function. They have ``api_version = 4``, and the index of
#: the function as ``index`` in their ``backend_config``. Source: ``jaxlib/py_client_cpu.cc`` in jax-ml/jax.
CALLBACK_TARGET: Final = "xla_ffi_python_cpu_callback"


class JudgeOption(NamedTuple):
    value: str
    reason: str
    faults: tuple[str, ...]  # the known faults that it avoids, in docs/upstream-findings.md


#: Options of the compiler without which XLA is wrong, on every way to it; runs of a release as it comes have none.
JUDGE_OPTIONS: Final[Mapping[str, JudgeOption]] = {
    "xla_cpu_experimental_ynn_fusion_type": JudgeOption(
        "",
        "XLA computes fusions of products, sums and windows itself, in place of kernels of YNNPACK",
        ("xla-kernels-of-dilated-windows", "xla-kernels-of-minima", "xla-kernels-of-products", "xla-kernels-of-rank-7"),
    ),
}
#: Options that the installed release does not have, as it said.
_lacking: set[str] = set()
_UNKNOWN_OPTION: Final = re.compile(r"No such compile option: '(\w+)'")


class XlaArray(Protocol):
    """An array on the device of XLA, in this process or in a child process."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type."""

    @property
    def address(self) -> int:
        """The address of its memory in the process of its device."""

    @property
    def is_deleted(self) -> bool:
        """Whether it was donated to an execution."""

    def view(self) -> np.ndarray[Any, Any]:
        """Return the values, read-only."""

    def holders(self) -> list[str]:
        """Return descriptions of other references to its memory."""


class XlaCall(BlockedJax):
    """A context manager for calls into jaxlib: without jax, and with failures raised as :class:`XlaFailure`."""

    __slots__ = ()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        super().__exit__(kind, error, trace)
        # JaxRuntimeError is a RuntimeError; the other two are raised for types that XLA does not support.
        if isinstance(error, RuntimeError | ValueError | TypeError):
            raise XlaFailure(str(error).strip()) from error


class DeviceArray:
    __slots__ = ("_array", "_views", "dtype", "shape")

    def __init__(self, array: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._array = array
        self._views: list[ref[Any]] = []
        self.shape: tuple[int, ...] = shape
        self.dtype: np.dtype[Any] = dtype

    @property
    def raw(self) -> Any:
        return self._array

    @property
    def is_deleted(self) -> bool:
        return bool(self._array.is_deleted())

    @property
    def address(self) -> int:
        with BlockedJax():
            return int(self._array.unsafe_buffer_pointer())

    def view(self) -> np.ndarray[Any, Any]:
        """Return the values, read-only: as a view of device memory, or as a copy for element types that XLA packs."""
        with BlockedJax():
            array, copied = self._array._single_device_array_to_np_array_did_copy()
        if copied:
            array.flags.writeable = False
        else:
            self._views = [each for each in self._views if each() is not None]
            self._views.append(ref(array))
        viewed: np.ndarray[Any, Any] = array
        return viewed

    def holders(self) -> list[str]:
        live = sum(each() is not None for each in self._views)
        return [] if not live else ["a live view" if live == 1 else f"{live} live views"]


@dataclass(frozen=True, slots=True)
class DeviceArgument:
    array: XlaArray | np.ndarray[Any, Any]
    is_overwritten: bool = False  # a result overwrites it, or a copy of it
    is_given: bool = False  # its own memory is overwritten


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    results: Sequence[XlaArray]
    addresses: list[int]  # of each argument on the device, before the run
    moved: list[bool]  # whether each argument was copied to the device first


class XlaProgram:
    """A compiled program.

    ``opened`` has the bounded dimensions of each of the first results, whose sizes follow as results of their own.
    """

    def __init__(self, executable: Any, results: Sequence[ArrayType], opened: Sequence[Sequence[int]]) -> None:
        self._executable = executable
        self._results = tuple(results)
        self._opened = opened if any(opened) else ()
        self._zero_copy = xla_client().HostBufferSemantics.ZERO_COPY
        self._handlers = [_result_handler(*each) for each in self._results]

    def execute(self, arguments: Sequence[DeviceArgument]) -> ExecutionResult:
        """Run the program; arguments that are overwritten are deleted, even if the run fails."""
        moved = [not isinstance(each.array, DeviceArray) for each in arguments]
        placed = [_on_device(each) for each in arguments]
        addresses = [each.address for each in placed]
        with XlaCall():
            results = self._executable.execute_sharded([each.raw for each in placed])
            arrays = results.consume_with_handlers(self._handlers)
            for each in arrays:
                each.block_until_ready()
        found = [DeviceArray(array, *kind) for array, kind in zip(arrays, self._results, strict=True)]
        del placed
        release_host_arrays()
        return ExecutionResult(self._cut_on_device(found) if self._opened else found, addresses, moved)

    def call(self, arrays: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
        """Run on contiguous host arrays of native byte order, which XLA reads without copying.

        The results are read-only: views of device memory, or copies for element types that XLA packs.
        """
        with XlaCall():
            results = self._executable.execute_sharded([_placed(each, self._zero_copy) for each in arrays])
            outputs = results.consume_with_handlers(self._handlers)
            views = [each._single_device_array_to_np_array_did_copy() for each in outputs]
        release_host_arrays()
        for view, copied in views:
            if copied:
                view.flags.writeable = False
        found = [view for view, _ in views]
        return _cut(found, self._opened) if self._opened else found

    def _cut_on_device(self, results: Sequence[DeviceArray]) -> list[DeviceArray]:
        import numpy as np

        cut = _cut([each.view() for each in results], self._opened)
        return [
            put_on_device(np.ascontiguousarray(array), own=True) if axes else each
            for each, array, axes in zip(results, cut, self._opened, strict=False)
        ]


def _cut(results: Sequence[Any], opened: Sequence[Sequence[int]]) -> list[Any]:
    """Return results without the elements beyond their sizes, which are the last results."""
    sizes = iter(results[len(opened) :])
    found = []
    for each, axes in zip(results, opened, strict=False):
        taken = [slice(None)] * each.ndim
        for axis in axes:
            taken[axis] = slice(int(next(sizes)))
        found.append(each[tuple(taken)] if axes else each)
    return found


def _on_device(argument: DeviceArgument) -> DeviceArray:
    """Return the argument itself if it may be overwritten or is only read, otherwise a copy."""
    import numpy as np

    array = argument.array
    if isinstance(array, DeviceArray) and (argument.is_given or not argument.is_overwritten):
        return array
    values = array if isinstance(array, np.ndarray) else array.view()
    return put_on_device(values, own=argument.is_overwritten)


def release_host_arrays() -> None:
    """Release the host arrays that XLA has read; otherwise XLA releases them when it is called the next time."""
    _jaxlib().collect_garbage()


def put_on_device(array: np.ndarray[Any, Any], *, own: bool) -> DeviceArray:
    """Put a contiguous array of native byte order on the device.

    With ``own`` the data is copied to memory of XLA, which can be donated; otherwise XLA may use the memory of
    ``array``, which must not change while the result is in use.
    """
    semantics = xla_client().HostBufferSemantics
    with XlaCall():
        placed = _placed(array, semantics.IMMUTABLE_ONLY_DURING_CALL if own else semantics.ZERO_COPY)
    return DeviceArray(placed, array.shape, array.dtype)


def _placed(array: np.ndarray[Any, Any], kept: Any) -> Any:
    put, sharding, devices = _putting()
    kind = described(array.shape, array.dtype)
    return put(kind, sharding, [array], devices, True, host_buffer_semantics=kept, enable_x64=True)


@cache
def _putting() -> tuple[Any, Any, list[Any]]:
    return xla_client().batched_device_put, _sharding(), [client_of(1)[1][0]]


def compile_with(client: Any, program: Any, devices: Any, options: Any, callbacks: Sequence[Callback]) -> Any:
    """Callbacks serve the custom calls of :data:`CALLBACK_TARGET`, by index; their results are not checked."""
    given, functions = program, {}
    if callbacks:
        # With functions jaxlib only takes a module.
        provider = get_provider("jaxlib")
        given = provider.parse(provider.new_context(), program)
        functions["host_callbacks"] = [with_all_floats(allowing_jax(each)) for each in callbacks]
    while True:
        given_options = {name: each.value for name, each in JUDGE_OPTIONS.items() if name not in _lacking}
        options.env_option_overrides = list(given_options.items())
        try:
            return client.compile_and_load(given, devices, options, **functions)
        except RuntimeError as error:
            unknown = _UNKNOWN_OPTION.search(str(error))
            if unknown is None or unknown[1] not in given_options:
                raise
            _lacking.add(unknown[1])


def approx_top_k_size(size: int, rank: int, k: int, recall: float, least: int) -> int:
    """Return how many values XLA returns for an approximate top-k that does not aggregate them.

    ``recall`` is at most 1; ``least`` is the size from which the number follows, at least ``size``, or -1 for ``size``.
    """
    return int(_jaxlib().approx_top_k_reduction_output_size(size, rank, k, recall, False, least)[0])


@cache
def xla_client() -> Any:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # as in bindings.provider
    try:
        return import_module("jaxlib.xla_client")
    except ImportError as error:
        raise ProviderError(f"the engine xla is part of jaxlib: install jaxlib ({error})") from error


_clients: dict[int, tuple[Any, Any]] = {}
_making = threading.Lock()


def client_of(devices: int) -> tuple[Any, Any]:
    """Return the client and its devices; a fork of the process that created the client lacks its threads."""
    if (known := _clients.get(devices)) is not None:
        return known
    # Arrays of one client cannot be used with another.
    with _making:
        if devices not in _clients:
            if _is_fork:
                raise EngineError(
                    "this process was forked after XLA had been used in_process, and cannot use it: start processes "
                    "with the method spawn or forkserver, or run programs in child processes (in_process=False)"
                )
            client = xla_client().make_cpu_client(num_devices=devices)
            _clients[devices] = client, xla_client().DeviceList(tuple(client.local_devices()[:devices]))
    return _clients[devices]


_is_fork = False


def _after_fork() -> None:
    global _is_fork
    _is_fork = _is_fork or bool(_clients)
    _clients.clear()
    _putting.cache_clear()
    _sharding.cache_clear()


after_fork(_after_fork)


@cache
def _jaxlib() -> Any:
    return import_module("jaxlib._jax")


@cache
def _sharding() -> Any:
    # SingleDeviceSharding does not work without jax in 0.10.
    return xla_client().GSPMDSharding(client_of(1)[1], xla_client().HloSharding.replicate())


def _result_handler(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    make = _jaxlib().array_result_handler
    arguments = (described(shape, dtype), _sharding(), True)
    # The handler of 0.12 has no parameter for skipping checks.
    return make(*arguments, True) if "_skip_checks" in (make.__doc__ or "") else make(*arguments)


def described(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Describe an array for jaxlib, which uses only these attributes."""
    return SimpleNamespace(shape=shape, dtype=dtype, weak_type=False)


# Registration of jaxlib's LAPACK custom calls with XLA
#
# The routines are jaxlib's, and call the LAPACK of scipy. Source: ``jaxlib/lapack.py`` in jax-ml/jax.

_OTHERS: Final = frozenset({"tridiagonal_solve_perturbed_ffi"})


def is_lapack(target: str) -> bool:
    return target in _OTHERS or (target.startswith("lapack_") and target.endswith("_ffi"))


def missing_routine(target: str) -> str:
    return missing_part(get_provider("jaxlib"), target) or "the installed jaxlib has no such routine"


@cache
def register_lapack() -> frozenset[str]:
    client = xla_client()
    if find_spec("scipy") is None:
        raise MissingExtraError(
            f"LAPACK custom calls use the LAPACK of scipy, which is not installed: {installing('scipy')}"
        )
    with BlockedJax():
        lapack = import_module("jaxlib.lapack")
        for platform, routines in lapack.registrations().items():
            for target, function, version in routines:
                client.register_custom_call_target(target, function, platform=platform, api_version=version)
        lapack._lapack.initialize()
    return frozenset(lapack._lapack.registrations())
