"""Dataclasses made cheaply: they are what the standard library would have made."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import sys
from collections.abc import Callable
from dataclasses import field
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from vhlo_tools import records

pytestmark = pytest.mark.every_python

_T = TypeVar("_T")

MAKERS: dict[str, Callable[..., Any]] = {"standard": dataclasses.dataclass, "ours": records._dataclass}


def point(make: Callable[..., Any], **options: Any) -> Any:
    @make(slots=True, **options)
    class Point:
        """A point."""

        x: int
        y: float = 1.5
        tags: tuple[str, ...] = ()
        marks: dict[str, int] = field(default_factory=dict, hash=False)
        note: str = field(default="", compare=False, repr=False)

        def length(self) -> float:
            return abs(self.x) + abs(self.y)

    return Point


@pytest.fixture(params=[{}, {"frozen": True}, {"frozen": True, "order": True}, {"eq": False}], ids=str)
def both(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    return point(MAKERS["standard"], **request.param), point(MAKERS["ours"], **request.param)


def outcome(function: Callable[[], Any]) -> Any:
    try:
        return function()
    except (TypeError, AttributeError) as error:
        return type(error), str(error).replace("super", "")


ASKED: dict[str, Callable[[Any], Any]] = {
    "repr": lambda made: repr(made(1, 2.0, ("a",), {"b": 3}, "c")).replace("both.<locals>.", ""),
    "defaults": lambda made: (made(1).y, made(1).tags, made(1).marks, made(1).note),
    "factories": lambda made: made(1).marks is made(1).marks,
    "equal": lambda made: (made(1) == made(1), made(1) == made(2), made(1) != made(2), made(1) == 1),
    "not compared": lambda made: made(1, note="a") == made(1, note="b"),
    # Both at once: of one that is gone, another may have the address, and with it the hash.
    "hash": lambda made: len({hash(each) for each in (made(1, marks={"a": 1}), made(1, note="b"))}),
    "order": lambda made: (made(1) < made(2), made(1) >= made(2), sorted([made(2), made(1)])[0].x),
    "order of others": lambda made: made(1) < 1,
    "assignment": lambda made: setattr(made(1), "x", 2),
    "deletion": lambda made: delattr(made(1), "x"),
    "another attribute": lambda made: type(outcome(lambda: setattr(made(1), "z", 2))),
    "slots": lambda made: (made.__slots__, hasattr(made(1), "__dict__")),
    "match": lambda made: made.__match_args__,
    "names": lambda made: (made.__name__, made.__module__, made.__doc__, made(3).length()),
    "missing argument": lambda made: made(),
    "unknown argument": lambda made: made(1, z=2),
    "unknown and missing": lambda made: made(z=2),
    "too many arguments": lambda made: made(1, 2.0, (), {}, "", 6),
    "an argument twice": lambda made: made(1, x=2),
    "signature": lambda made: [(each.name, each.kind) for each in inspect.signature(made).parameters.values()],
    "annotations": lambda made: list(made.__init__.__annotations__),
    "is": lambda made: (dataclasses.is_dataclass(made), dataclasses.is_dataclass(made(1))),
    "fields": lambda made: [
        (each.name, each.type, each.default, each.compare, each.repr, each.hash, each.init)
        for each in dataclasses.fields(made)
        if each.name != "marks"
    ],
    "params": lambda made: [getattr(made.__dataclass_params__, name) for name in ("frozen", "eq", "order")],
    "asdict": lambda made: dataclasses.asdict(made(1, tags=("a",), marks={"b": 2})),
    "astuple": lambda made: dataclasses.astuple(made(1, tags=("a",))),
    "replace": lambda made: dataclasses.astuple(dataclasses.replace(made(1, tags=("a",)), x=5)),
    "copy": lambda made: [dataclasses.astuple(each(made(1, marks={"a": 1}))) for each in (copy.copy, copy.deepcopy)],
}


@pytest.mark.parametrize("instances", [0, 5, 10])
@pytest.mark.parametrize("asked", ASKED)
def test_they_are_as_the_standard_library_makes_them(both: tuple[Any, Any], asked: str, instances: int) -> None:
    # The first instances are made without what is compiled for those that follow.
    for made in both:
        assert len([made(each) for each in range(instances)]) == instances
    standard, ours = (outcome(lambda made=made: ASKED[asked](made)) for made in both)  # type: ignore[misc]
    assert ours == standard


@pytest.mark.skipif(sys.version_info < (3, 13), reason="copy.replace is new in Python 3.13")
def test_they_are_replaced_by_copy(both: tuple[Any, Any]) -> None:
    replaced = [dataclasses.astuple(getattr(copy, "replace")(made(1), y=3.0)) for made in both]  # noqa: B009
    assert replaced[0] == replaced[1]


@records.dataclass(frozen=True, slots=True)
class Base:
    name: str
    size: int = 1


@records.dataclass(frozen=True, slots=True)
class Derived(Base):
    size: int = 2
    more: tuple[int, ...] = ()
    limit: ClassVar[int] = 7

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name.upper())


@records.dataclass(frozen=True, slots=True)
class Box(Generic[_T]):
    held: _T


@records.dataclass()
class Open:
    name: str
    held: list[int] = field(default_factory=list)


def test_values_are_compared_as_those_of_tuples() -> None:
    # The standard library does so up to Python 3.12.
    nan = float("nan")
    assert Box(nan) == Box(nan)
    assert Box(nan) != Box(float("nan"))


def test_a_derived_class_has_the_fields_of_its_base() -> None:
    made = Derived("a", more=(1,))
    assert repr(made) == "Derived(name='A', size=2, more=(1,))"
    assert vars(Derived)["__slots__"] == ("more",)
    assert [each.name for each in dataclasses.fields(Derived)] == ["name", "size", "more"]
    assert Derived.limit == made.limit == 7
    assert Base("a", 2) != Derived("a")
    assert dataclasses.replace(made, size=9) == Derived("a", 9, (1,))


def test_one_of_a_type_variable_can_be_subscripted() -> None:
    assert Box[int](3) == Box(3)
    assert {Box("a"), Box("a")} == {Box("a")}


def test_one_without_slots_has_a_dictionary() -> None:
    made = Open("a")
    made.held.append(1)
    assert vars(made) == {"name": "a", "held": [1]}
    with pytest.raises(TypeError, match="unhashable"):
        hash(made)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("made", [Derived("a", more=(1, 2)), Open("a", [1])], ids=repr)
def test_they_can_be_pickled(made: object, protocol: int) -> None:
    if protocol < 2 and isinstance(made, Derived):
        pytest.skip("classes with slots need protocol 2")
    assert pickle.loads(pickle.dumps(made, protocol)) == made


def test_one_in_itself_can_be_shown() -> None:
    made = Open("a")
    made.held.append(made)  # type: ignore[arg-type]
    assert repr(made) == "Open(name='a', held=[...])"


def test_a_dataclass_of_the_standard_library_is_no_base() -> None:
    @dataclasses.dataclass
    class Standard:
        name: str

    with pytest.raises(TypeError, match="derives from .*Standard, a dataclass of the standard library"):

        @records.dataclass(slots=True)
        class Made(Standard):
            size: int


def test_a_field_that_is_no_parameter_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Made\.size: expected a field that is a parameter"):

        @records.dataclass(slots=True)
        class Made:
            size: int = field(init=False)


def test_methods_are_made_when_they_are_first_used() -> None:
    @records.dataclass(frozen=True, slots=True)
    class Made:
        size: int

    assert not inspect.isfunction(vars(Made)["__init__"])
    assert not isinstance(vars(Made)["__dataclass_fields__"], dict)
    assert dataclasses.asdict(Made(1)) == {"size": 1}
    assert not inspect.isfunction(vars(Made)["__init__"])
    assert [Made(each).size for each in range(10)] == list(range(10))
    assert inspect.isfunction(vars(Made)["__init__"])
    assert isinstance(vars(Made)["__dataclass_fields__"], dict)


def test_fields_may_have_the_names_of_our_own_parameters() -> None:
    @records.dataclass(frozen=True, slots=True)
    class Made:
        instance: int
        given: int = 2

    assert [repr(Made(instance=1, given=each)).rpartition(".")[2] for each in range(9)] == [
        f"Made(instance=1, given={each})" for each in range(9)
    ]
