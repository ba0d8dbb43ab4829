"""Steps of training: the loss, gradients and updated parameters, with the state of the optimizer donated."""

# mypy: allow-subclassing-any, no-warn-return-any

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.export.experimental import _export_forward_backward
from torch.func import functional_call, grad_and_value
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

import vhlo_tools as vt
from vhlo_tools.integrations.torch import export

#: What torch says where its own kernels are turned off, and of itself.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore:{said}")
    for said in ("TF32 acceleration on top of oneDNN", ".*treespec, LeafSpec", "The tensor attributes? .*_flat_weights")
]

Tensors = dict[str, torch.Tensor]
State = dict[str, Tensors]
STEPS = 5


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm2d(4), nn.Linear(36, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(nn.functional.max_pool2d(torch.relu(self.norm(self.first(x))), 2).flatten(1))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.last = nn.LSTM(4, 6, batch_first=True), nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.layer(x)[0][:, -1])


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.last = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.layer(x).mean(1))


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "mlp": (lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), (5, 4)),
    "convolutions": (Convolutions, (5, 1, 8, 8)),
    "recurrent": (Recurrent, (5, 7, 4)),
    "transformer": (Transformer, (5, 6, 8)),
}


class Step(nn.Module):
    """A traced step as a module."""

    def __init__(self, traced: nn.Module) -> None:
        super().__init__()
        self.traced = traced

    def forward(self, state: State, x: torch.Tensor, y: torch.Tensor) -> Any:
        return self.traced(state, x, y)


def sgd(params: Tensors, gradients: Tensors, state: State) -> tuple[Tensors, State]:
    momenta = {name: 0.9 * each + gradients[name] for name, each in state["momenta"].items()}
    return {name: each - 0.1 * momenta[name] for name, each in params.items()}, {"momenta": momenta}


def adam(params: Tensors, gradients: Tensors, state: State, decay: float = 0.0) -> tuple[Tensors, State]:
    step = state["step"]["count"] + 1
    means = {name: 0.9 * each + 0.1 * gradients[name] for name, each in state["exp_avg"].items()}
    squares = {name: 0.999 * each + 0.001 * gradients[name] ** 2 for name, each in state["exp_avg_sq"].items()}
    rate, scale = 0.01 / (1 - 0.9**step), (1 - 0.999**step).sqrt()
    params = {
        name: each * (1 - 0.01 * decay) - rate * means[name] / (squares[name].sqrt() / scale + 1e-8)
        for name, each in params.items()
    }
    return params, {"step": {"count": step}, "exp_avg": means, "exp_avg_sq": squares}


#: How each updates parameters, the names of its tensors of their shapes, and torch's own.
OPTIMIZERS: dict[str, tuple[Any, tuple[str, ...], Callable[..., torch.optim.Optimizer]]] = {
    "sgd": (sgd, ("momenta",), partial(torch.optim.SGD, lr=0.1, momentum=0.9)),
    "adam": (adam, ("exp_avg", "exp_avg_sq"), partial(torch.optim.Adam, lr=0.01)),
    "adamw": (
        partial(adam, decay=0.1),
        ("exp_avg", "exp_avg_sq"),
        partial(torch.optim.AdamW, lr=0.01, weight_decay=0.1),
    ),
}


def step_of(model: nn.Module, update: Any) -> Callable[[State, torch.Tensor, torch.Tensor], tuple[State, torch.Tensor]]:
    def step(state: State, x: torch.Tensor, y: torch.Tensor) -> tuple[State, torch.Tensor]:
        def loss_of(params: Tensors) -> Any:
            buffers = {name: each.clone() for name, each in state["buffers"].items()}
            return nn.functional.cross_entropy(functional_call(model, {**params, **buffers}, (x,)), y), buffers

        gradients, (loss, buffers) = grad_and_value(loss_of, has_aux=True)(state["params"])
        params, of_optimizer = update(state["params"], gradients, state)
        return {"params": params, "buffers": buffers, **of_optimizer}, loss

    return step


@pytest.mark.parametrize(
    ("name", "optimizer"), [*((name, each) for name in MODELS for each in ("sgd", "adam")), ("mlp", "adamw")]
)
def test_training_is_that_of_torch(name: str, optimizer: str) -> None:
    torch.manual_seed(0)
    make, shape = MODELS[name]
    # Adam makes steps of gradients that are nothing but rounding, unless they are far below its epsilon.
    model = make().double().train()
    update, moments, make_optimizer = OPTIMIZERS[optimizer]
    state: State = {
        "params": {name: each.detach().clone() for name, each in model.named_parameters()},
        "buffers": {name: each.clone() for name, each in model.named_buffers()},
        **({} if optimizer == "sgd" else {"step": {"count": torch.zeros((), dtype=torch.float64)}}),
        **{kind: {name: torch.zeros_like(each) for name, each in model.named_parameters()} for kind in moments},
    }
    x, y = torch.randn(shape).double(), torch.tensor([0, 1, 2, 0, 1])
    with torch.backends.mkldnn.flags(enabled=False):
        traced = make_fx(step_of(model, update))(state, x, y)
    exported = export(Step(traced), (state, x, y), verify=optimizer == "sgd")
    states = [each for each in exported.inputs if each.startswith("state.")]
    assert [each.removeprefix("output0.") for each in exported.outputs[:-1]] == [
        each.removeprefix("state.") for each in states
    ]
    # The state, which the step replaces, is given away.
    aliases = exported.artifact.aliases()
    for number in range(len(states)):
        aliases.set_up_alias(output_index=(number,), parameter_number=number)
    executable = vt.load_executable(exported.artifact.with_aliases(aliases), engine="xla")
    values: list[Any] = [each.numpy().copy() for each in pytree.tree_leaves(state)]
    eager = make_optimizer(model.parameters())
    for _ in range(STEPS):
        *values, loss = executable.run([*values, x.numpy(), y.numpy()], donate=range(len(states)))
        eager.zero_grad()
        expected = nn.functional.cross_entropy(model(x), y)
        expected.backward()
        eager.step()
        np.testing.assert_allclose(loss, expected.detach().numpy(), rtol=1e-7)
    found = dict(zip(states, values, strict=True))
    for key, each in [*model.named_parameters()]:
        np.testing.assert_allclose(found[f"state.params.{key}"], each.detach().numpy(), rtol=1e-6, atol=1e-8)
        for kind in moments if optimizer != "sgd" else ():
            moment = eager.state[each][kind].numpy()
            np.testing.assert_allclose(found[f"state.{kind}.{key}"], moment, rtol=1e-6, atol=1e-12)
    for key, each in model.named_buffers():
        np.testing.assert_allclose(found[f"state.buffers.{key}"], each.numpy(), rtol=1e-6)


class Loss(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
        logits = self.model(x)
        return {"logits": logits.detach(), "loss": nn.functional.cross_entropy(logits, y)}


@pytest.mark.parametrize("importer", ["torchax", "torch-mlir"])
@pytest.mark.parametrize("name", MODELS)
def test_a_joint_graph_returns_the_gradients_of_autograd(name: str, importer: Any) -> None:
    torch.manual_seed(0)
    make, shape = MODELS[name]
    model, x, y = Loss(make().train()), torch.randn(shape, requires_grad=True), torch.tensor([0, 1, 2, 0, 1])
    joint = _export_forward_backward(torch.export.export(model, (x, y)), joint_loss_index=1)
    exported = export(joint, weights="arguments", importer=importer, verify=True)
    assert exported.inputs == ("x", "y")
    results = vt.run(exported.artifact, [x.detach().numpy(), y.numpy(), *exported.weights.values()])
    expected = model(x, y)
    expected["loss"].backward()
    gradients = {f"gradients.{name}": each.grad for name, each in [*model.named_parameters(), ("x", x)]}
    wanted = {**expected, **gradients, **dict(model.named_buffers())}
    assert exported.outputs == tuple(wanted)
    for key, found in zip(exported.outputs, results, strict=True):
        np.testing.assert_allclose(found, wanted[key].detach().numpy(), rtol=1e-4, atol=1e-6, err_msg=key)
    assert joint.graph.owning_module is joint.graph_module
    # What torch generated has no lines.
    assert b"eval_with_key" not in bytes(exported.artifact)


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **options: Any) -> torch.Tensor:
    return nn.functional.scaled_dot_product_attention(q, k, v, **options).square().sum()


MASK = torch.tensor([[1, 0, 1, 1, 1, 0], [1] * 6, [0, 0, 0, 0, 0, 1], [1] * 6, [0, 1] * 3]).bool()


@pytest.mark.parametrize("importer", ["torchax", "torch-mlir"])
@pytest.mark.parametrize("options", [{"is_causal": True, "scale": 0.3}, {"attn_mask": MASK}, {"enable_gqa": True}])
def test_gradients_of_attention(options: dict[str, Any], importer: Any) -> None:
    torch.manual_seed(0)
    heads = 2 if "enable_gqa" in options else 4
    args = torch.randn(2, 4, 5, 8), torch.randn(2, heads, 6, 8), torch.randn(2, heads, 6, 8)
    traced = make_fx(grad_and_value(partial(attend, **options), argnums=(0, 1, 2)))(*args)
    export(traced, args, importer=importer, verify=True)
