"""What a case is: a function of TensorFlow with its inputs, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import tensorflow as tf
from framework_programs import Outcome, became

from vhlo_tools.integrations.tensorflow import export, export_saved_model

CASES: dict[str, Callable[[], Outcome]] = {}


def drawn(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def case(name: str, function: Callable[..., Any], *inputs: Any, compiled: bool = False, **options: Any) -> None:
    """Add a function; ``compiled`` if TensorFlow's own kernels give other numbers or signs than XLA."""
    assert name not in CASES

    def tried() -> Outcome:
        model = export(function, *inputs, **options)
        given = [np.asarray(each) for each in tf.nest.flatten(inputs)]
        wanted = tf.function(function, jit_compile=compiled)(*tf.nest.map_structure(tf.constant, inputs))
        what, said = became(model.bound().artifact, [(given, [each.numpy() for each in tf.nest.flatten(wanted)])])
        return what, f"{said}{_noted(model)}"

    CASES[name] = tried


def _noted(model: Any) -> str:
    return "".join(dict.fromkeys(f"; {each.feature}: {each.message}" for each in model.findings))


def stateful(name: str, make: Callable[[], Any], *inputs: Any, steps: int = 3) -> None:
    """Add the method ``step`` of a module, called several times with the values that it returned for its variables."""
    assert name not in CASES

    def tried() -> Outcome:
        module = make()
        model = export(module.step, *inputs)
        given = [np.asarray(each) for each in tf.nest.flatten(inputs)]
        updated = model.outputs[len(model.outputs) - sum(each in model.weights for each in model.outputs) :]
        values = dict(model.weights)
        for _ in range(steps):
            wanted = [each.numpy() for each in tf.nest.flatten(module.step(*inputs)) if each is not None]
            # The values that variables have now.
            again = export(module.step, *inputs, verify=False)
            after = {each: again.weights[each] for each in updated}
            expected = [*wanted, *(after[each] for each in updated)]
            outcome = became(model.artifact, [([*given, *values.values()], expected)])
            if outcome[0] != "equal":
                return outcome
            values |= after
        return outcome[0], f"{outcome[1]}{_noted(model)}"

    CASES[name] = tried


def saved(
    name: str, make: Callable[[], tuple[Any, dict[str, Any]]], signature: str, inputs: dict[str, Any], **options: Any
) -> None:
    """Add a signature of a SavedModel."""
    assert name not in CASES

    def tried() -> Outcome:
        module, signatures = make()
        with TemporaryDirectory() as folder:
            tf.saved_model.save(module, folder, signatures, tf.saved_model.SaveOptions(save_debug_info=True))
            model = export_saved_model(folder, signature, verify=True, **options)
            loaded = tf.saved_model.load(folder)
            before = list(model.weights.values())
            found = loaded.signatures[signature](**{each: tf.constant(value) for each, value in inputs.items()})
        wanted = [found[each].numpy() for each in sorted(found)]
        # The variable that `encode` counts with.
        wanted += [
            before[model.arguments.index(each) - len(model.inputs)] + 10 for each in model.outputs[len(wanted) :]
        ]
        return became(model.artifact, [([*(inputs[each] for each in model.inputs), *before], wanted)])

    CASES[name] = tried


X, Y, V, P = drawn(4, 6), drawn(6, 5), drawn(8), np.abs(drawn(3, 5)) + 0.1
SPD = (lambda m: (m @ m.T + 4 * np.eye(4)).astype(np.float32))(drawn(4, 4))
IMAGE = np.abs(np.tanh(drawn(1, 8, 8, 3)))
IDS, SEED = np.array([2, 0, 1, 2], np.int32), np.array([1, 2], np.int32)
