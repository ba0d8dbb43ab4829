"""Steps of training: the loss, gradients and updated parameters, with the state of the optimizer donated."""

# mypy: allow-subclassing-any, no-warn-return-any

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call, grad_and_value
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils import _pytree as pytree

import vhlo_tools as vt
from vhlo_tools.integrations.torch import export

#: What torch says where its own kernels are turned off.
pytestmark = pytest.mark.filterwarnings("ignore:TF32 acceleration on top of oneDNN")

State = dict[str, dict[str, torch.Tensor]]
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


def step_of(model: nn.Module) -> Callable[[State, torch.Tensor, torch.Tensor], tuple[State, torch.Tensor]]:
    def step(state: State, x: torch.Tensor, y: torch.Tensor) -> tuple[State, torch.Tensor]:
        def loss_of(params: dict[str, torch.Tensor]) -> Any:
            buffers = {name: each.clone() for name, each in state["buffers"].items()}
            return nn.functional.cross_entropy(functional_call(model, {**params, **buffers}, (x,)), y), buffers

        gradients, (loss, buffers) = grad_and_value(loss_of, has_aux=True)(state["params"])
        momenta = {name: 0.9 * each + gradients[name] for name, each in state["momenta"].items()}
        params = {name: each - 0.1 * momenta[name] for name, each in state["params"].items()}
        return {"params": params, "momenta": momenta, "buffers": buffers}, loss

    return step


@pytest.mark.parametrize("name", MODELS)
def test_training_is_that_of_torch(name: str) -> None:
    torch.manual_seed(0)
    make, shape = MODELS[name]
    model = make().train()
    state: State = {
        "params": {name: each.detach().clone() for name, each in model.named_parameters()},
        "momenta": {name: torch.zeros_like(each) for name, each in model.named_parameters()},
        "buffers": {name: each.clone() for name, each in model.named_buffers()},
    }
    x, y = torch.randn(shape), torch.tensor([0, 1, 2, 0, 1])
    with torch.backends.mkldnn.flags(enabled=False), sdpa_kernel(SDPBackend.MATH):
        traced = make_fx(step_of(model))(state, x, y)
    exported = export(Step(traced), (state, x, y), verify=True)
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
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(STEPS):
        *values, loss = executable.run([*values, x.numpy(), y.numpy()], donate=range(len(states)))
        optimizer.zero_grad()
        expected = nn.functional.cross_entropy(model(x), y)
        expected.backward()
        optimizer.step()
        np.testing.assert_allclose(loss, expected.detach().numpy(), rtol=1e-4)
    found = dict(zip(states, values, strict=True))
    for key, each in [*model.named_parameters()]:
        np.testing.assert_allclose(found[f"state.params.{key}"], each.detach().numpy(), rtol=1e-3, atol=1e-5)
    for key, each in model.named_buffers():
        np.testing.assert_allclose(found[f"state.buffers.{key}"], each.numpy(), rtol=1e-4, atol=1e-5)
