"""What an export takes, what it gives back and by which names, and what it refuses."""

# mypy: allow-subclassing-any, no-warn-return-any

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from support.exported_models import check_writing_options
from support.xla_cpu import run_on_xla
from torch import nn

import vhlo_tools as vt
from vhlo_tools.artifact.extraction import read_tensors
from vhlo_tools.integrations.torch import export

both_importers = pytest.mark.parametrize("importer", ["torchax", "torch-mlir"])


class Nested(nn.Module):
    """Nested inputs and outputs, tied weights, and weights of every sort."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.register_buffer("fleeting", torch.full((4,), 0.5), persistent=False)
        self.register_buffer("lasting", torch.full((4,), 0.25))
        self.unread = nn.Parameter(torch.ones(1))
        self.plain = torch.arange(4.0)

    def forward(self, x: torch.Tensor, options: dict[str, Any], *rest: torch.Tensor, scale: torch.Tensor) -> Any:
        y = self.second(self.first(x)) + self.fleeting + self.lasting * options["bias"][0] * options["bias"][1]
        return {"logits": y * scale + self.plain + rest[0], "parts": (y.sum(), None), "x": x}


ARGS = (torch.ones(2, 4), {"bias": (torch.arange(4.0), 3)}, torch.full((4,), 2.0))
KWARGS = {"scale": torch.tensor([2.0])}
VALUES = [ARGS[0], ARGS[1]["bias"][0], ARGS[2], KWARGS["scale"]]


@pytest.fixture
def nested() -> Nested:
    torch.manual_seed(1)
    return Nested().eval()


def check(results: list[Any], expected: dict[str, Any]) -> None:
    wanted = [expected["logits"], expected["parts"][0], expected["x"]]
    for result, tensor in zip(results, wanted, strict=True):
        np.testing.assert_allclose(result, tensor.detach().numpy(), rtol=1e-6)


@both_importers
@pytest.mark.parametrize("exported_first", [False, True])
def test_names_and_weights(nested: Nested, exported_first: bool, importer: Any) -> None:
    if exported_first:
        model = export(torch.export.export(nested, ARGS, KWARGS), weights="arguments", importer=importer)
    else:
        model = export(nested, ARGS, KWARGS, weights="arguments", importer=importer)
    assert model.inputs == ("x", "options.bias.0", "rest_0", "scale")
    assert model.outputs == ("logits", "parts.0", "x")
    # Once what is tied, in the order of the module, and nothing that the program does not read.
    assert [*model.weights] == ["first.weight", "first.bias", "second.bias", "fleeting", "lasting"]
    assert model.arguments == (*model.inputs, *model.weights)
    for name, value in model.weights.items():
        assert np.array_equal(value, nested.get_parameter(name).detach() if "." in name else nested.get_buffer(name))
    values = [*(each.numpy() for each in VALUES), *model.weights.values()]
    check(run_on_xla(bytes(model.artifact), values), nested(*ARGS, **KWARGS))
    # They are those of the program and not constants beside them.
    changed = {name: value + 1 for name, value in model.weights.items()}
    with torch.no_grad():
        for name in changed:
            (nested.get_parameter(name) if "." in name else nested.get_buffer(name)).add_(1)
    values = [*(each.numpy() for each in VALUES), *changed.values()]
    check(run_on_xla(bytes(model.artifact), values), nested(*ARGS, **KWARGS))


@both_importers
def test_weights_as_constants(nested: Nested, importer: Any) -> None:
    model = export(nested, ARGS, KWARGS, importer=importer)
    assert (model.inputs, model.weights) == (("x", "options.bias.0", "rest_0", "scale"), {})
    check(run_on_xla(bytes(model.artifact), [each.numpy() for each in VALUES]), nested(*ARGS, **KWARGS))


def test_weights_are_copies_that_the_model_does_not_change(nested: Nested) -> None:
    model = export(nested, ARGS, KWARGS, weights="arguments")
    before = model.weights["first.weight"].copy()
    with torch.no_grad():
        nested.first.weight.zero_()
    assert np.array_equal(model.weights["first.weight"], before)


def test_weights_in_a_file(nested: Nested, tmp_path: Path) -> None:
    nested.bfloat16()
    args = (ARGS[0].bfloat16(), {"bias": (ARGS[1]["bias"][0].bfloat16(), 3)}, ARGS[2].bfloat16())
    model = export(nested, args, {"scale": KWARGS["scale"].bfloat16()}, weights="arguments")
    model.save(tmp_path / "model.mlirbc", weights=tmp_path / "weights.safetensors")
    assert vt.open_artifact(tmp_path / "model.mlirbc") == model.artifact
    read = read_tensors(memoryview((tmp_path / "weights.safetensors").read_bytes()), "weights.safetensors")
    assert set(read.tensors) == set(model.weights)
    for name, value in model.weights.items():
        assert value.dtype == ml_dtypes.bfloat16
        assert bytes(read.tensors[name]) == value.tobytes()


@both_importers
def test_a_module_stays_as_it_is(nested: Nested, importer: Any) -> None:
    nested.train()
    nested.first.weight.requires_grad_(False)
    before = {name: value.clone() for name, value in [*nested.named_parameters(), *nested.named_buffers()]}
    pointers = {name: value.data_ptr() for name, value in nested.named_parameters()}
    hooks, attributes = len(nested._forward_hooks), set(vars(nested))
    with torch.random.fork_rng():
        state = torch.get_rng_state()
        for weights in ("constants", "arguments"):
            export(nested, ARGS, KWARGS, weights=weights, importer=importer)
        assert torch.equal(torch.get_rng_state(), state)
    assert nested.training
    assert nested.second.training
    assert [p.requires_grad for p in nested.parameters()] == [True, False, True, True]
    assert (len(nested._forward_hooks), set(vars(nested))) == (hooks, attributes)
    assert pointers == {name: value.data_ptr() for name, value in nested.named_parameters()}
    for name, value in [*nested.named_parameters(), *nested.named_buffers()]:
        assert torch.equal(value, before[name]), name


@both_importers
def test_what_a_model_changes_is_a_result(importer: Any) -> None:
    torch.manual_seed(3)
    model = nn.BatchNorm1d(4)
    x = torch.rand(3, 4)
    exported = export(model, (x,), weights="arguments", importer=importer)
    names = ("running_mean", "running_var", "num_batches_tracked")
    assert exported.outputs == ("output0", *names)
    results = run_on_xla(bytes(exported.artifact), [x.numpy(), *exported.weights.values()])
    expected = model(x)
    for result, tensor in zip(results, [expected, *(model.get_buffer(name) for name in names)], strict=True):
        np.testing.assert_allclose(result, tensor.detach().numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(vt.InvalidProgramError, match=r"changes its weights num_batches_tracked, .*\(by aten.*eval"):
        export(nn.BatchNorm1d(4), (x,), importer=importer)


class Increment(nn.Module):
    def forward(self, counter: torch.Tensor) -> torch.Tensor:
        counter.add_(1)
        return counter * 2


@both_importers
def test_an_input_that_a_model_changes_is_a_result(importer: Any) -> None:
    exported = export(Increment(), (torch.zeros(2),), importer=importer)
    assert (exported.inputs, exported.outputs) == (("counter",), ("output0", "counter"))
    doubled, counter = run_on_xla(bytes(exported.artifact), [np.array([4, 5], np.float32)])
    assert (doubled.tolist(), counter.tolist()) == ([10, 12], [5, 6])


class Large(nn.Module):
    """A large tensor that is neither a parameter nor a buffer, and one weight that is read by its transpose too."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.arange(1000.0)
        self.weight = nn.Parameter(torch.arange(6.0).reshape(2, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x @ self.weight @ self.weight.T + self.table[:2]) * self.table.sum()


@both_importers
@pytest.mark.parametrize("weights", ["constants", "arguments"])
def test_tensors_that_are_no_weights_are_constants(weights: Any, importer: Any) -> None:
    exported = export(Large(), (torch.ones(1, 2),), weights=weights, importer=importer)
    assert [*exported.weights] == ["weight"] * (weights == "arguments")
    (result,) = run_on_xla(bytes(exported.artifact), [np.ones((1, 2), np.float32), *exported.weights.values()])
    np.testing.assert_allclose(result, Large()(torch.ones(1, 2)).detach().numpy(), rtol=1e-6)
    assert max(each.bytes for each in vt.constants(exported.artifact)) == 4000


class Fails(nn.Module):
    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what
        if what == "meta":
            self.weight = nn.Parameter(torch.ones(3, device="meta"))
        elif what == "complex":
            self.weight = nn.Parameter(torch.ones(3, dtype=torch.complex64))
        elif what == "sparse":
            self.register_buffer("matrix", torch.eye(3).to_sparse())
        elif what == "packed":
            self.layer = torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(3, 2)), {nn.Linear})

    def forward(self, x: torch.Tensor) -> Any:
        match self.what:
            case "lgamma":
                return x.lgamma()
            case "cumprod":
                return x.cumprod(0)
            case "nonzero":
                return x[x > 0]
            case "cond":
                return torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (x,))
            case "branch":
                return x if x.sum() > 0 else -x
            case "unique":
                return torch.unique(x)
            case "loop":
                while x.sum() < 10:
                    x = x + 1
                return x
            case "number":
                return x, 4
            case "text":
                return {"x": x, "kind": "text"}
            case "item":
                return x, x.sum().item()
            case "sparse":
                return torch.sparse.mm(self.matrix, x[:, None])
            case "checks":
                return torch.distributions.Normal(0.0, x, validate_args=True).log_prob(x)
            case "loss":
                return torch.nn.functional.gaussian_nll_loss(x, x, x)
            case "packed":
                return self.layer(x)
            case "object":
                return {"x": x, "by": Increment}
            case "quantized":
                return torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)
            case "complex":
                return x * self.weight
            case "random":
                return x + torch.rand(3)
            case "airy":
                return torch.special.airy_ai(x)
            case _:
                raise ZeroDivisionError("no way")


MLIR, AX = r"torch-mlir cannot convert Fails to StableHLO: ", r"torchax cannot convert Fails to StableHLO: "


@pytest.mark.filterwarnings("ignore:torch.ao.quantization is deprecated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor, :UserWarning")
@pytest.mark.parametrize(
    ("importer", "what", "message"),
    [
        ("torch-mlir", "lgamma", MLIR + r"aten\.lgamma at .*test_export.py:\d+$"),
        ("torch-mlir", "cumprod", MLIR + r"aten\.cumprod$"),
        ("torch-mlir", "nonzero", MLIR + r"aten\.index\.Tensor at .*\.py:\d+ returns a shape that depends on values$"),
        ("torch-mlir", "cond", MLIR + r"cond at .*test_export.py:\d+ \(it has no ops on functions\)$"),
        ("torch-mlir", "complex", r"aten\.mul\.Tensor at .*\(only floating-point or integer datatype .* supported\)$"),
        ("torchax", "nonzero", AX + r"aten\.index\.Tensor at .*\.py:\d+ returns a shape that depends on values$"),
        ("torchax", "random", AX + r"aten\.rand\.default at .*test_export.py:\d+ \(it draws random numbers: pass"),
        (
            "torchax",
            "airy",
            AX + r"aten\.special_airy_ai\.default at .*test_export.py:\d+ \(torchax does not have it\)$",
        ),
        ("auto", "airy", AX + r"aten\.special_airy_ai.*; " + MLIR + r"aten\.special_airy_ai"),
        ("auto", "nonzero", AX + r".*depends on values; " + MLIR + r".*depends on values$"),
        ("auto", "unique", AX + r"aten\._unique2\.default at .*test_export.py:\d+ returns a shape that depends"),
        ("auto", "branch", r"Fails: GuardOnData.*: Could not guard .* at .*test_export.py:\d+ \(.*torch\.cond choose"),
        ("auto", "loop", r"Fails: GuardOnData.*: Could not guard .* at .*test_export.py:\d+ \(.*torch\.while_loop rep"),
        ("torch-mlir", "quantized", r"torch-mlir cannot import Fails: it has no tensors of torch\.quint8$"),
        (
            "auto",
            "number",
            r"^Fails returns output1, the int 4, which is not a tensor \(torch\.tensor\(4\) is one\): expe",
        ),
        ("auto", "text", r"^Fails returns kind, the str 'text', which is not a tensor: expected tensors and None$"),
        ("auto", "item", r"^Fails returns output1, a float that is only known at run time \(a tensor can have it\)"),
        (
            "auto",
            "sparse",
            r"Fails: matrix, of aten\._sparse_addmm\.default at .*\.py:\d+, is a tensor of torch\.sparse_coo",
        ),
        (
            "auto",
            "checks",
            r"Fails: Guard.*\(Distribution.__init__ of torch asks .*: validate_args=False omits the check",
        ),
        ("auto", "loss", r"Fails: GuardOnData.*test_export\.py:\d+ \(gaussian_nll_loss of torch asks for it; "),
        ("auto", "packed", r"Fails: it holds a torch\.classes\.quantized\.LinearPackedParamsBase, an object of C\+\+"),
        (
            "auto",
            "object",
            r"Fails: RuntimeError: Found <class '\w+'> in output, which is not .* register a pytree for it$",
        ),
        ("auto", "wrong", r"torch\.export cannot export Fails: ZeroDivisionError: no way at .*test_export\.py:\d+$"),
    ],
)
def test_what_cannot_be_exported(importer: Any, what: str, message: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(vt.InvalidProgramError, match=message) as caught:
        export(Fails(what).eval(), (torch.ones(3),), importer=importer)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((nn.Linear(2, 2),), "requires example inputs"),
        ((nn.Linear(2, 2), torch.ones(2)), "args is a Tensor: expected a tuple"),
        ((torch.ones(2), (torch.ones(2),)), "a torch.Tensor is neither a torch.nn.Module"),
    ],
)
def test_what_is_no_model(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(vt.InvalidProgramError, match=message):
        export(*arguments)


def test_an_exported_program_has_its_inputs() -> None:
    program = torch.export.export(nn.Linear(2, 2), (torch.ones(2),))
    with pytest.raises(vt.InvalidProgramError, match="already has its inputs and shapes"):
        export(program, (torch.ones(2),))


def test_weights_that_are_neither() -> None:
    with pytest.raises(ValueError, match="expected one of constants, arguments"):
        export(nn.Linear(2, 2), (torch.ones(2),), weights="both")  # type: ignore[arg-type]


def test_nothing_is_printed(nested: Nested, capfd: pytest.CaptureFixture[str]) -> None:
    export(nested, ARGS, KWARGS)
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_versions_of_both_libraries() -> None:
    """``current`` is that of the installed bindings, also where it is not that of torch-mlir."""
    model = nn.Linear(2, 2)
    x = (torch.ones(2),)
    assert export(model, x).artifact.version == vt.resolve_target("current").version
    theirs = vt.resolve_target("current", provider="torch_mlir").version
    assert export(model, x, provider="torch_mlir").artifact.version == theirs
    with pytest.raises(vt.UnknownTargetError, match=r"0\.1\.0"):
        export(model, x, target="0.1.0")


@pytest.mark.parametrize("weights", ["constants", "arguments"])
def test_what_an_export_returns_is_a_program(weights: Any) -> None:
    layer = nn.Linear(4, 3)
    x = torch.linspace(-1, 1, 8).reshape(2, 4).requires_grad_()
    model = export(torch.export.export(layer, (x,)), weights=weights)
    (result,) = vt.run(model, [x])
    np.testing.assert_allclose(result, layer(x).detach(), rtol=1e-6)
    if weights == "arguments":
        (result,) = vt.run(model, [x, *model.weights.values()])
        np.testing.assert_allclose(result, layer(x).detach(), rtol=1e-6)
    assert vt.serialize(model, "1.0.0") == vt.serialize(model.artifact, "1.0.0")
    assert vt.verify(model, model.artifact, rounds=1).passed


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_tensors_of_narrow_floats_are_inputs(name: str) -> None:
    x = torch.linspace(-2, 2, 6).reshape(2, 3).to(getattr(torch, name))
    kind = {"float8_e4m3fn": "f8E4M3FN", "float8_e5m2": "f8E5M2"}.get(name, "bf16")
    text = f"func.func @main(%a: tensor<3x2x{kind}>) -> tensor<3x2x{kind}> {{ return %a : tensor<3x2x{kind}> }}"
    (result,) = vt.run(text, [x.t()])
    assert result.dtype == np.dtype(getattr(ml_dtypes, name))
    assert result.astype(np.float32).tolist() == x.t().float().tolist()


def test_a_module_is_refused_with_the_call_that_makes_a_program() -> None:
    with pytest.raises(vt.InvalidProgramError, match=r"; pass torch.export.export\(module, \(x,\)\)$"):
        vt.serialize(nn.Linear(2, 2))


@both_importers
def test_the_sign_of_a_nan_is_zero(importer: Any) -> None:
    class Signs(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return torch.sign(x), torch.sgn(x), torch.sign(x > 0), torch.sign(x.nan_to_num().int())

    x = torch.tensor([float("nan"), -2.0, 0.0, 3.0])
    results = run_on_xla(bytes(export(Signs(), (x,), importer=importer).artifact), [x.numpy()])
    for result, expected in zip(results, Signs()(x), strict=True):
        np.testing.assert_array_equal(result, expected.numpy())


class Tangent(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tan(x)


@both_importers
def test_options_of_writing(importer: Any, tmp_path: Path) -> None:
    check_writing_options(partial(export, Tangent(), (torch.ones(3),), importer=importer), tmp_path)
