"""The bindings used bare, as one would without this package: what our results are compared with."""

from __future__ import annotations

import importlib
from typing import Any

from vhlo_tools.bindings import Provider


class RawLibrary:
    """`serialize_portable_artifact` and its kin, in contexts made by hand."""

    def __init__(self, provider: Provider) -> None:
        self.prefix = provider.prefix
        self.ir: Any = importlib.import_module(f"{self.prefix}.ir")
        self.stablehlo: Any = importlib.import_module(f"{self.prefix}._mlir_libs._stablehlo")

    def context(self) -> Any:
        context = self.ir.Context()
        if self.prefix == "jaxlib.mlir":
            registry = self.ir.DialectRegistry()
            importlib.import_module("jaxlib.mlir._mlir_libs._jax_mlir_ext").register_dialects(registry)
            context.append_dialect_registry(registry)
            for name in ("chlo", "sdy"):
                importlib.import_module(f"jaxlib.mlir.dialects.{name}").register_dialect(context)
            importlib.import_module("jaxlib.mlir.dialects.mhlo").register_mhlo_dialect(context)
        self.stablehlo.register_dialect(context)
        context.load_all_available_dialects()
        # Quantized types parse only in a context that has deserialized something.
        empty = self.stablehlo.serialize_portable_artifact_str(b"module {}", "0.9.0")
        self.stablehlo.deserialize_portable_artifact(context, empty)
        return context

    def parse(self, source: str | bytes) -> Any:
        return self.ir.Module.parse(source, self.context())

    def serialize(self, module: Any, target: str, *, allow_other_dialects: bool = False) -> bytes | None:
        """Return the artifact, or `None` if the library refuses; `module` is VHLO afterwards."""
        handler = module.context.attach_diagnostic_handler(lambda _: True)
        try:
            artifact: bytes = self.stablehlo.serialize_portable_artifact(module, target, allow_other_dialects)
        except ValueError:
            return None
        finally:
            handler.detach()
        return artifact

    def deserialize(self, artifact: bytes) -> Any:
        return self.stablehlo.deserialize_portable_artifact(self.context(), artifact)
