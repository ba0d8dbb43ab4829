"""What refers to an array: names and containers of it are the array, views of it are not."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

import vhlo_tools as vt

GLOBAL = np.zeros(3)


@dataclass
class Weights:
    array: np.ndarray[Any, Any]


class Slotted:
    __slots__ = ("array",)

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array


def holders(array: np.ndarray[Any, Any]) -> list[str]:
    return vt.Buffer.holders([vt.Buffer(array)])[0]


def test_nothing_else() -> None:
    assert vt.Buffer.holders([vt.Buffer(np.zeros(3))]) == [[]]


def test_names() -> None:
    array = np.zeros(3)
    again = array
    assert holders(array) == []
    assert holders(GLOBAL) == []
    assert again is array


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "hold",
    [
        lambda array: [array, array],
        lambda array: (array, 1),
        lambda array: {"w": array},
        lambda array: {"w": {"b": array}},
        lambda array: ({"w": array}, [array]),
        Weights,
        Slotted,
        lambda array: lambda: array,
        lambda array: np.array([array, None], object).tolist(),
    ],
)
def test_containers(hold: Any) -> None:
    array = np.zeros(3)
    held = hold(array)
    gc.collect()
    assert holders(array) == []
    assert held is not None


@pytest.mark.parametrize(
    ("view", "said"),
    [
        (lambda array: array[1:], ["a live view"]),
        (lambda array: array.reshape(3, 1).T, ["a live view"]),
        (lambda array: array[1:][1:], ["a live view"]),
        (lambda array: [array[1:], array[:1]], ["2 live views"]),
        (lambda array: array.flat, ["a live view"]),
        (memoryview, ["a memoryview"]),
        (vt.Buffer, ["another Buffer"]),
    ],
)
def test_views(view: Any, said: list[str]) -> None:
    array = np.zeros(3)
    seen = view(array)
    assert holders(array) == said
    del seen
    assert holders(array) == []


def test_a_view_beside_names_and_containers_of_the_same_array() -> None:
    array = np.zeros(3)
    again, kept, view = array, {"w": [array]}, array[:2]
    assert holders(array) == ["a live view"]
    assert holders(again) == ["a live view"]
    assert (kept["w"][0] is array, view.size) == (True, 2)


def test_a_view_that_a_closure_and_its_function_share_with_the_array() -> None:
    array = np.zeros(3)
    view = array[1:]

    def inner() -> list[str]:
        return holders(array)

    assert inner() == ["a live view"]
    assert holders(array) == ["a live view"]
    assert view.size == 2


def test_a_generator() -> None:
    array = np.zeros(3)

    def generate() -> Iterator[int]:
        mine = array
        yield mine.size

    generator = generate()
    assert next(generator) == 3
    assert holders(array) == []
    view = array[1:]
    assert holders(array) == ["a live view"]
    assert view.size == 2


def test_another_thread() -> None:
    array = np.zeros(3)
    started, done = Event(), Event()

    def wait(mine: np.ndarray[Any, Any]) -> None:
        started.set()
        done.wait()
        del mine

    thread = Thread(target=wait, args=(array,))
    thread.start()
    started.wait()
    assert holders(array) == []
    view = array[1:]
    assert holders(array) == ["a live view"]
    done.set()
    thread.join()
    assert view.size == 2


def test_asking_keeps_nothing_alive() -> None:
    array = np.zeros(3)
    view = array[1:]
    holders(array)
    del view
    assert holders(array) == []


def test_many_at_once() -> None:
    arrays = [np.zeros(3) for _ in range(50)]
    views = [arrays[7][1:], arrays[9][1:], arrays[9][:1]]
    found = vt.Buffer.holders([vt.Buffer(each) for each in arrays])
    said = {number: each for number, each in enumerate(found) if each}
    assert said == {7: ["a live view"], 9: ["2 live views"]}
    assert len(views) == 3
