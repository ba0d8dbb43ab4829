"""Programs whose body is of elements of a few bits, ``E``, and whose arguments and results are of wider ones."""

from __future__ import annotations

from collections.abc import Sequence

from support.both_engines import function


def narrow_program(
    element: str, wide: str, body: str, names: Sequence[str], takes: Sequence[str], gives: Sequence[str], more: str = ""
) -> str:
    """Return a program that computes ``names`` of ``body`` from ``%a``, ``%b`` and so on, of sizes as ``2x3x``."""
    taken, results = list(zip("abcdefgh", takes, strict=False)), [f"%r{at}" for at in range(len(names))]
    arguments = ", ".join(f"%{letter}w: tensor<{size}{wide}>" for letter, size in taken)
    lines = [
        f"%{name} = stablehlo.convert %{name}w : (tensor<{size}{wide}>) -> tensor<{size}E>" for name, size in taken
    ]
    lines.append(body)
    for result, name, size in zip(results, names, gives, strict=True):
        lines.append(f"{result} = stablehlo.convert {name} : (tensor<{size}E>) -> tensor<{size}{wide}>")
    text = function(arguments, "\n".join(lines), results, [f"tensor<{size}{wide}>" for size in gives]) + more
    return text.replace("xE>", f"x{element}>").replace("<E>", f"<{element}>")


def region(name: str) -> str:
    """Return the region of a reduction by an op."""
    return f"""({{ ^bb0(%x: tensor<E>, %y: tensor<E>):
        %v = stablehlo.{name} %x, %y : tensor<E>
        stablehlo.return %v : tensor<E> }})"""


#: A loop over calls of ``STEP``, a tuple and a branch: from ``%a`` and ``%b`` to ``%c``, each of six elements.
CONTROL_FLOW = """%n = stablehlo.constant dense<COUNT> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %w:2 = stablehlo.while(%k = %zero, %v = %a) : tensor<i32>, tensor<6xE> cond {
        %p = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      } do {
        %l = stablehlo.add %k, %one : tensor<i32>
        %m = func.call @step(%v, %b) : (tensor<6xE>, tensor<6xE>) -> tensor<6xE>
        stablehlo.return %l, %m : tensor<i32>, tensor<6xE>
      }
      %t = stablehlo.tuple %w#1, %n : tuple<tensor<6xE>, tensor<i32>>
      %g = stablehlo.get_tuple_element %t[0] : (tuple<tensor<6xE>, tensor<i32>>) -> tensor<6xE>
      %c = "stablehlo.case"(%one) ({ stablehlo.return %a : tensor<6xE> }, {
        %q = stablehlo.subtract %g, %b : tensor<6xE>
        stablehlo.return %q : tensor<6xE> }) : (tensor<i32>) -> tensor<6xE>
"""
STEP = """
    func.func private @step(%a: tensor<6xE>, %b: tensor<6xE>) -> tensor<6xE> {
      %0 = stablehlo.multiply %a, %b : tensor<6xE>
      %1 = stablehlo.add %0, %b : tensor<6xE>
      return %1 : tensor<6xE>
    }"""
