"""XLA's client for the CPU, through jaxlib alone: programs compiled, arrays on the device, and run.

``jaxlib.xla_client`` and ``jaxlib._jax`` are private to jaxlib; what is used of them is the same from 0.8.1 to 0.12
but where the code says so. jax is not needed, and is not imported: see :mod:`vhlo_tools.bindings.no_jax`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from vhlo_tools.bindings.float_environment import with_all_floats
from vhlo_tools.bindings.no_jax import WithoutJax, allowing_jax
from vhlo_tools.bindings.xla import XlaFailure
from vhlo_tools.errors import ProviderError

if TYPE_CHECKING:
    import numpy as np

    from vhlo_tools.bindings.ir import Module

__all__ = [
    "CALLBACK_TARGET",
    "ArrayType",
    "DeviceArray",
    "XlaCall",
    "XlaProgram",
    "client_of",
    "compile_for_cpu",
    "described",
    "host_callbacks",
    "put_on_device",
    "release_host_arrays",
    "xla_client",
]

#: The shape and the element type of an array.
ArrayType = tuple[tuple[int, ...], "np.dtype[Any]"]

#: What a custom call that a function in Python computes has as its target. It has ``api_version = 4``, and the index of
#: the function as ``index`` in its ``backend_config``. Source: ``jaxlib/py_client_cpu.cc`` in jax-ml/jax.
CALLBACK_TARGET: Final = "xla_ffi_python_cpu_callback"


class XlaCall(WithoutJax):
    """A context in which jaxlib is called: without jax, and with its failures as :class:`XlaFailure`."""

    __slots__ = ()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        super().__exit__(kind, error, trace)
        # JaxRuntimeError is a RuntimeError; types that XLA does not know are the others.
        if isinstance(error, RuntimeError | ValueError | TypeError):
            raise XlaFailure(str(error).strip()) from error


class DeviceArray:
    """An array in the memory of the device.

    Attributes:
        shape: Its sizes.
        dtype: The type of its elements.
    """

    __slots__ = ("_array", "_views", "dtype", "shape")

    def __init__(self, array: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._array = array
        self._views: list[ref[Any]] = []
        self.shape = shape
        self.dtype = dtype

    @property
    def raw(self) -> Any:
        """The array as jaxlib has it."""
        return self._array

    @property
    def is_deleted(self) -> bool:
        """Whether it was given away to an execution."""
        return bool(self._array.is_deleted())

    @property
    def address(self) -> int:
        """Where its memory begins."""
        with WithoutJax():
            return int(self._array.unsafe_buffer_pointer())

    def view(self) -> np.ndarray[Any, Any]:
        """Return the values, read-only: in the memory of the device, but for elements that XLA packs."""
        with WithoutJax():
            array, copied = self._array._single_device_array_to_np_array_did_copy()
        if copied:
            array.flags.writeable = False
        else:
            self._views = [each for each in self._views if each() is not None]
            self._views.append(ref(array))
        viewed: np.ndarray[Any, Any] = array
        return viewed

    def holders(self) -> list[str]:
        """Return what else refers to its memory."""
        live = sum(each() is not None for each in self._views)
        return [] if not live else ["a live view" if live == 1 else f"{live} live views"]


class XlaProgram:
    """A program that was compiled.

    Args:
        executable: As jaxlib has it.
        results: The shape and the element type of each result.
    """

    def __init__(self, executable: Any, results: Sequence[ArrayType]) -> None:
        self._executable = executable
        self._results = tuple(results)
        self._zero_copy = xla_client().HostBufferSemantics.ZERO_COPY
        self._handlers = [_result_handler(*each) for each in self._results]

    def execute(self, arguments: Sequence[DeviceArray]) -> list[DeviceArray]:
        """Run it. Arguments that have an alias are given away, unless something else refers to their memory.

        Raises:
            XlaFailure: If XLA refuses or fails.
        """
        with XlaCall():
            results = self._executable.execute_sharded([each.raw for each in arguments])
            arrays = results.consume_with_handlers(self._handlers)
            for each in arrays:
                each.block_until_ready()
        return [DeviceArray(array, *kind) for array, kind in zip(arrays, self._results, strict=True)]

    def call(self, arrays: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
        """Run it on arrays of the host, contiguous and in the machine's byte order, which XLA reads where they are.

        Returns:
            The results, read-only: in the memory of the device, but for elements that XLA packs.

        Raises:
            XlaFailure: If XLA refuses or fails.
        """
        with XlaCall():
            results = self._executable.execute_sharded([_placed(each, self._zero_copy) for each in arrays])
            outputs = results.consume_with_handlers(self._handlers)
            views = [each._single_device_array_to_np_array_did_copy() for each in outputs]
        release_host_arrays()
        for view, copied in views:
            if copied:
                view.flags.writeable = False
        return [view for view, _ in views]


def release_host_arrays() -> None:
    """Let go of the arrays of the host that XLA has read; by itself it does so when it is called the next time."""
    _jaxlib().collect_garbage()


def compile_for_cpu(
    module: Module, results: Sequence[ArrayType], callbacks: Sequence[Callable[..., tuple[Any, ...]]] = ()
) -> XlaProgram:
    """Compile a module of StableHLO for one device.

    Args:
        module: The module, whose ``main`` takes and gives arrays of static shapes.
        results: The shape and the element type of each result.
        callbacks: What computes its custom calls of :data:`CALLBACK_TARGET`, by their index.

    Raises:
        XlaFailure: If XLA refuses it.
        ProviderError: If jaxlib is not installed.
    """
    xla, client, devices = xla_client(), *_device()
    with XlaCall():
        executable = client.compile_and_load(module, devices, xla.CompileOptions(), **host_callbacks(callbacks))
    return XlaProgram(executable, results)


def put_on_device(array: np.ndarray[Any, Any], *, own: bool) -> DeviceArray:
    """Return an array on the device.

    Args:
        array: The array, contiguous and in the machine's byte order.
        own: Whether it is in memory of XLA's own, which can be given away; otherwise XLA may use that of ``array``,
            which must not change as long as the result is used.

    Raises:
        XlaFailure: If XLA has no elements of this type.
    """
    semantics = xla_client().HostBufferSemantics
    with XlaCall():
        placed = _placed(array, semantics.IMMUTABLE_ONLY_DURING_CALL if own else semantics.ZERO_COPY)
    return DeviceArray(placed, array.shape, array.dtype)


def _placed(array: np.ndarray[Any, Any], kept: Any) -> Any:
    """Return an array on the device, as jaxlib has it; ``kept`` is one of its ``HostBufferSemantics``."""
    put, sharding, devices = _putting()
    kind = described(array.shape, array.dtype)
    return put(kind, sharding, [array], devices, True, host_buffer_semantics=kept, enable_x64=True)


@cache
def _putting() -> tuple[Any, Any, list[Any]]:
    """Return what puts arrays on devices, and onto which."""
    return xla_client().batched_device_put, _sharding(), [_device()[1][0]]


def host_callbacks(functions: Sequence[Callable[..., tuple[Any, ...]]]) -> dict[str, Any]:
    """Return what jaxlib's compiler is told of functions in Python.

    A function gets an array for each operand, ``None`` for a token, and must return one of the very type for each
    result: nobody looks at what it returns, or at how much.
    """
    return {"host_callbacks": [with_all_floats(allowing_jax(each)) for each in functions]} if functions else {}


@cache
def xla_client() -> Any:
    """Return the module ``jaxlib.xla_client``.

    Raises:
        ProviderError: If jaxlib is not installed.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # as in bindings.provider
    try:
        return import_module("jaxlib.xla_client")
    except ImportError as error:
        raise ProviderError(f"the engine xla comes with jaxlib: install jaxlib ({error})") from error


@cache
def client_of(devices: int) -> tuple[Any, Any]:
    """Return a client with so many devices, one for each number, and the list of these."""
    client = xla_client().make_cpu_client(num_devices=devices)
    return client, xla_client().DeviceList(tuple(client.local_devices()[:devices]))


@cache
def _jaxlib() -> Any:
    return import_module("jaxlib._jax")


def _device() -> tuple[Any, Any]:
    """Return the client, and the list of the one device that programs run on."""
    return client_of(1)


@cache
def _sharding() -> Any:
    # SingleDeviceSharding does not work without jax in 0.10.
    return xla_client().GSPMDSharding(_device()[1], xla_client().HloSharding.replicate())


def _result_handler(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    make = _jaxlib().array_result_handler
    arguments = (described(shape, dtype), _sharding(), True)
    # 0.12 has no checks that could be skipped.
    return make(*arguments, True) if "_skip_checks" in (make.__doc__ or "") else make(*arguments)


def described(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Return what describes an array to jaxlib, which asks for no more than these attributes of it."""
    return SimpleNamespace(shape=shape, dtype=dtype, weak_type=False)
