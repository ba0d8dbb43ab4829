"""Dataclasses that cost little to make: those of the standard library, with methods that are made on first use.

The standard library writes and compiles the source of six methods when a class is made. That takes half a millisecond,
and a short command imports a hundred classes, of which it uses a third, most of them once or twice. Here ``__init__``
is compiled for the eighth instance of a class, and no other method has a source of its own. What the functions of
:mod:`dataclasses` need (``fields``, ``replace``, ``asdict``) is made when they are first called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeVar

_T = TypeVar("_T", bound=type)


def _dataclass(
    *, frozen: bool = False, slots: bool = False, eq: bool = True, order: bool = False
) -> Callable[[_T], _T]:
    """The options are those of the standard library, whose dataclasses cannot be bases."""
    return lambda cls: _made(cls, frozen=frozen, slots=slots, eq=eq, order=order)


if TYPE_CHECKING:
    import dataclasses
    from typing import dataclass_transform

    # Not declared as the decorator of the standard library, for which mypyc has a way of its own to make classes.
    @dataclass_transform(field_specifiers=(dataclasses.field,))
    def dataclass(
        *, frozen: bool = False, slots: bool = False, eq: bool = True, order: bool = False
    ) -> Callable[[_T], _T]: ...

else:
    dataclass = _dataclass


class _OnUse:
    """An attribute of a class that is made when it is first looked up, and then replaces itself."""

    __slots__ = ("_make", "_name", "_owner")

    def __init__(self, make: Callable[[type], Any]) -> None:
        self._make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        made = self._make(self._owner)
        setattr(self._owner, self._name, made)
        bind = getattr(made, "__get__", None)
        return bind(instance, owner) if bind else made


class _Initializer(_OnUse):
    """``__init__``, which is made when it is looked up otherwise than for a first instance."""

    __slots__ = ("_left",)

    def __init__(self, make: Callable[[type], Any]) -> None:
        super().__init__(make)
        self._left = 7  # instances

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        # Threads may take one more than there are. `inspect` of Python 3.13 asks with the class as the instance.
        if self._left <= 0 or not isinstance(instance, self._owner):
            return super().__get__(instance, owner)
        self._left -= 1
        return partial(self._fill, instance)

    def _fill(self, instance: Any, /, *given: Any, **named: Any) -> None:
        plans: dict[str, _Plan] = vars(self._owner)["__plans__"]
        values = dict(zip(plans, given, strict=False)) | named
        for name, plan in plans.items():
            if name not in values and (default := plan.default()) is not _NOTHING:
                values[name] = default
        if len(given) > len(plans) or named.keys() & list(plans)[: len(given)] or values.keys() != plans.keys():
            # Which says what is wrong.
            super().__get__(instance)(*given, **named)
            return
        for name, value in values.items():
            object.__setattr__(instance, name, value)
        if hasattr(instance, "__post_init__"):
            instance.__post_init__()


class _Plan:
    """One field of a class; ``given`` is its default or ``dataclasses.Field``, or ``_NOTHING``."""

    __slots__ = ("given", "kind", "name")

    def __init__(self, name: str, kind: Any, given: Any) -> None:
        self.name, self.kind, self.given = name, kind, given

    def says(self, option: str) -> Any:
        """Return an option of ``dataclasses.field``."""
        return getattr(self.given, option) if _is_field(self.given) else _USUAL[option]

    def default(self) -> Any:
        """Return what an instance has that is not given it; ``_NOTHING`` if it must be."""
        if not _is_field(self.given):
            return self.given
        from dataclasses import MISSING

        if self.given.default_factory is not MISSING:
            return self.given.default_factory()
        return _NOTHING if self.given.default is MISSING else self.given.default

    @property
    def hashed(self) -> bool:
        """Whether the field is part of the hash."""
        said = self.says("hash")
        return bool(self.says("compare") if said is None else said)


_NOTHING: Any = object()
_USUAL = {"compare": True, "hash": None, "init": True, "kw_only": False, "repr": True}


def _is_field(given: object) -> bool:
    # Without an import of `dataclasses`, which most modules do without.
    return type(given).__module__ == "dataclasses" and type(given).__name__ == "Field"


def _made(cls: Any, *, frozen: bool, slots: bool, eq: bool, order: bool) -> Any:
    """Return a new class, because a class has the slots that it is made with."""
    namespace = dict(vars(cls))
    plans: dict[str, _Plan] = {}
    for base in reversed(cls.__mro__[1:]):
        if "__dataclass_fields__" in vars(base) and "__plans__" not in vars(base):
            raise TypeError(f"{cls.__qualname__} derives from {base.__qualname__}, a dataclass of the standard library")
        plans |= vars(base).get("__plans__", {})
    inherited = frozenset(plans)
    for name, kind in namespace.get("__annotations__", {}).items():
        if not str(kind).startswith("ClassVar"):
            plans[name] = plan = _Plan(name, kind, namespace.pop(name, _NOTHING))
            if not plan.says("init") or plan.says("kw_only") is True:
                raise TypeError(f"{cls.__qualname__}.{name}: expected a field that is a parameter, by position as well")
    for name in ("__dict__", "__weakref__"):
        namespace.pop(name, None)
    if "__eq__" in namespace and namespace.get("__hash__", _NOTHING) is None:
        # Python's own doing, where a class has an `__eq__` of its own and no `__hash__`.
        del namespace["__hash__"]
    methods = _methods(plans.values(), frozen=frozen, eq=eq, order=order)
    described = {"__plans__": plans, "__qualname__": cls.__qualname__}
    if slots:
        described["__slots__"] = tuple(name for name in plans if name not in inherited)
    return type(cls)(cls.__name__, cls.__bases__, {**methods, **namespace, **described})


def _methods(plans: Iterable[_Plan], *, frozen: bool, eq: bool, order: bool) -> dict[str, Any]:
    compared = [plan.name for plan in plans if plan.says("compare")]
    made: dict[str, Any] = {
        "__init__": _Initializer(lambda cls: _initializer(cls, frozen=frozen)),
        "__repr__": _representation([plan.name for plan in plans if plan.says("repr")]),
        "__match_args__": tuple(plan.name for plan in plans),
        "__dataclass_fields__": _OnUse(lambda cls: vars(_described(cls))["__dataclass_fields__"]),
        "__dataclass_params__": _OnUse(
            lambda cls: vars(_described(cls, frozen=frozen, eq=eq, order=order))["__dataclass_params__"]
        ),
        "__replace__": _replace,
    }
    if frozen:
        made |= _FROZEN
    if eq:
        made["__eq__"] = _equality(compared)
        made["__hash__"] = _hashing([plan.name for plan in plans if plan.hashed]) if frozen else None
    if order:
        made |= {name: _comparison(name, compared) for name in ("__lt__", "__le__", "__gt__", "__ge__")}
    return made


def _initializer(cls: Any, *, frozen: bool) -> Callable[..., None]:
    plans: dict[str, _Plan] = cls.__plans__
    scope: dict[str, Any] = {"_NOTHING": _NOTHING, "__name__": cls.__module__}
    parameters, lines = ["self"], []
    for name, plan in plans.items():
        default, factory, value = plan.given, None, name
        if _is_field(default):
            from dataclasses import MISSING

            factory = None if default.default_factory is MISSING else default.default_factory
            default = _NOTHING if default.default is MISSING else default.default
        if factory is not None:
            scope[f"_make_{name}"] = factory
            parameters.append(f"{name}=_NOTHING")
            value = f"_make_{name}() if {name} is _NOTHING else {name}"
        elif default is not _NOTHING:
            scope[f"_default_{name}"] = default
            parameters.append(f"{name}=_default_{name}")
        else:
            parameters.append(name)
        if frozen:
            slot = getattr(cls, name, None)
            scope[f"_set_{name}"] = slot.__set__ if slot is not None else partial(_assign, name)
            lines.append(f" _set_{name}(self, {value})")
        else:
            lines.append(f" self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append(" self.__post_init__()")
    exec("\n".join([f"def __init__({', '.join(parameters)}):", *(lines or [" pass"])]), scope)
    made: Callable[..., None] = scope["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = {**{name: plan.kind for name, plan in plans.items()}, "return": None}
    return made


def _assign(name: str, instance: object, value: object) -> None:
    object.__setattr__(instance, name, value)


def _representation(names: list[str]) -> Callable[[Any], str]:
    @recursive_repr()
    def __repr__(self: Any) -> str:  # noqa: N807
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({shown})"

    return __repr__


def _values(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda instance: tuple(getattr(instance, name) for name in names)


def _equality(names: list[str]) -> Callable[[Any, Any], Any]:
    values = _values(names)
    return lambda self, other: values(self) == values(other) if type(other) is type(self) else NotImplemented


def _comparison(method: str, names: list[str]) -> Callable[[Any, Any], Any]:
    values, compare = _values(names), getattr(tuple, method)

    def compared(self: Any, other: Any) -> Any:
        return compare(values(self), values(other)) if type(other) is type(self) else NotImplemented

    return compared


def _hashing(names: list[str]) -> Callable[[Any], int]:
    values = _values(names)
    return lambda instance: hash(values(instance))


def _described(cls: Any, **options: bool) -> type:
    """Return a dataclass of the standard library with the same fields."""
    # Imported here because few classes are asked for their fields.
    import dataclasses

    fields = [
        (plan.name, plan.kind, dataclasses.field() if plan.given is _NOTHING else plan.given)
        for plan in cls.__plans__.values()
    ]
    kept: Any = {"init": False, "repr": False, "eq": False, **options}
    # Without a docstring, `dataclasses` would make one of the signature, by `inspect`.
    return dataclasses.make_dataclass(cls.__name__, fields, namespace={"__doc__": cls.__doc__ or ""}, **kept)


def _replace(self: Any, /, **changes: Any) -> Any:
    """For ``copy.replace``."""
    from dataclasses import replace

    return replace(self, **changes)


def _refuse_assignment(self: Any, name: str, value: Any) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: Any, name: str) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__match_args__]


def _set_state(self: Any, state: list[Any]) -> None:
    # As `pickle` would, were assignment not refused.
    for name, value in zip(self.__match_args__, state, strict=True):
        object.__setattr__(self, name, value)


_FROZEN = {
    "__setattr__": _refuse_assignment,
    "__delattr__": _refuse_deletion,
    "__getstate__": _state,
    "__setstate__": _set_state,
}
