from __future__ import annotations

import signal
import subprocess
import sys
import threading
from typing import Any

import pytest

import vhlo_tools as vt
from vhlo_tools.bindings import MLIRFailure, Provider, get_provider, provider_of
from vhlo_tools.bindings.provider import DIALECTS
from vhlo_tools.findings import SourceLocation

pytestmark = pytest.mark.every_python


def test_the_provider_is_chosen_by_prefix_distribution_or_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert get_provider("jaxlib.mlir") is get_provider("jaxlib")
    monkeypatch.setenv("VHLO_TOOLS_PROVIDER", "jaxlib")
    assert get_provider().prefix == "jaxlib.mlir"
    monkeypatch.setenv("VHLO_TOOLS_PROVIDER", "nonsense")
    with pytest.raises(
        vt.ProviderError, match="'nonsense' is not a known provider.*one of jaxlib.mlir, torch_mlir, mlir"
    ):
        get_provider()
    monkeypatch.setenv("VHLO_TOOLS_PROVIDER", "")
    assert get_provider().prefix == "jaxlib.mlir"


def test_a_provider_that_is_not_installed() -> None:
    with pytest.raises(vt.ProviderError, match="'mlir' are not installed: install stablehlo"):
        get_provider("mlir")


def test_contexts_have_the_dialects(provider: Provider) -> None:
    assert set(provider.lacking) <= set(DIALECTS)
    if provider.prefix == "jaxlib.mlir":
        assert provider.lacking == ()
    context = provider.new_context()
    assert provider.parse(context, "func.func @main(%a: tensor<4x!quant.uniform<i8:f32, 0.5>>) { return }")


def test_modules_are_told_from_other_objects(provider: Provider) -> None:
    module = provider.parse(provider.new_context(), "module {}")
    assert provider_of(module) is provider
    assert provider_of(provider.clone(module)) is provider
    assert provider.is_module(module)
    assert provider.is_module(provider.clone(module))
    assert not provider.is_module(module.context)
    assert provider_of("module {}") is None
    function = provider.parse(module.context, "func.func private @f()").body.operations[0]
    assert not provider.is_module(function)


def test_a_copy_is_detached_although_the_caller_has_an_insertion_point(provider: Provider) -> None:
    module = provider.parse(provider.new_context(), "func.func private @f()")
    with provider.ir.InsertionPoint(module.body):
        provider.clone(module)
    assert len(module.body.operations) == 1


@pytest.mark.parametrize(
    "attribute",
    ["1 : i32", 'loc("model.py":3:1)', "dense<(1.0, 2.0)> : tensor<2xcomplex<f32>>"],
    ids=["integer", "location", "complex tensor"],
)
def test_an_op_becomes_a_module_with_all_its_attributes(provider: Provider, attribute: str) -> None:
    source = f"module @m attributes {{my.attribute = {attribute}}} {{ func.func @main() {{ return }} }}"
    module = provider.parse(provider.new_context(), source)
    before = provider.text(module, debug_info=True)
    made = provider.as_module(provider.clone(module))
    assert isinstance(made, provider.ir.Module)
    assert provider.text(made, debug_info=True) == before


def test_diagnostics_are_captured_whole_and_never_leak(provider: Provider, capfd: pytest.CaptureFixture[str]) -> None:
    text = """
    func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
      %0 = "stablehlo.add"(%a) : (tensor<4xf32>) -> tensor<4xf32>
        loc(callsite("layer"("model.py":7:3) at "main.py":1:1))
      return %0 : tensor<4xf32>
    }"""
    with pytest.raises(MLIRFailure) as failed:
        provider.parse(provider.new_context(), text)
    diagnostic = failed.value.diagnostics[0]
    assert diagnostic.severity == "error"
    assert diagnostic.source == SourceLocation("model.py", 7, 3)
    assert "expected 2 operands, but found 1" in diagnostic.message
    assert diagnostic.notes[0].severity == "note"
    assert "see current operation" in diagnostic.notes[0].message
    assert "layer" in diagnostic.location
    assert capfd.readouterr() == ("", "")


def test_a_handler_of_the_caller_stays(provider: Provider, capfd: pytest.CaptureFixture[str]) -> None:
    module = provider.parse(
        provider.new_context(), "func.func @main(%a: tensor<4xf32> {my.x = affine_map<(d0) -> (d0)>}) { return }"
    )
    heard: list[str] = []

    def hear(diagnostic: Any) -> bool:
        heard.append(diagnostic.message)
        return True

    handler = module.context.attach_diagnostic_handler(hear)
    with pytest.raises(vt.UnsupportedFeatureError):
        vt.serialize(module)
    assert heard == []
    with pytest.raises(ValueError, match="failed to serialize"):
        provider.stablehlo.serialize_portable_artifact(module, "1.0.0")
    assert len(heard) == 1
    handler.detach()
    assert capfd.readouterr() == ("", "")


def test_nothing_of_a_failure_reaches_stderr() -> None:
    code = (
        "import vhlo_tools as vt\n"
        "for program in ('module { foo }', 'func.func @main(%a: tensor<4xf32> {my.x}) { return }'):\n"
        "    try: vt.serialize(program)\n"
        "    except vt.VhloToolsError: pass\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (result.stdout, result.stderr) == ("", "")


def test_the_op_classes_of_shardy_are_complete_afterwards() -> None:
    """jaxlib 0.12 copies the extension's names before all of them exist, if the extension is imported first."""
    code = (
        "import vhlo_tools as vt; vt.serialize('func.func @main() { return }')\n"
        "from jaxlib.mlir._mlir_libs import _sdy\n"
        "from jaxlib.mlir.dialects import sdy\n"
        "print([name for name in dir(_sdy) if not hasattr(sdy, name)])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_ctrl_c_waits_until_an_extension_has_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if another thread gets the signal, which is not blocked there."""
    from vhlo_tools.bindings import provider

    def interrupt() -> None:
        # As the kernel does with a signal for the process that the main thread blocks.
        loading.wait()
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    def load(_: str) -> str:
        loading.set()
        other.join()
        events.append("loaded")
        return "module"

    events: list[str] = []
    loading = threading.Event()
    # A thread begins with the signals blocked that the one has blocked that starts it.
    other = threading.Thread(target=interrupt)
    other.start()
    monkeypatch.setattr(provider, "import_module", load)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            get_provider().module("anything")
    finally:
        signal.signal(signal.SIGINT, before)
    assert events == ["loaded"]
