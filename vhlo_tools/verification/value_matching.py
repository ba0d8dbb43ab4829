"""Matching of corresponding values of two programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from difflib import SequenceMatcher

from vhlo_tools.execution import ProbedValue, ProbeSite

#: The key of a result of an op: the position of the op, and the number of the result.
Key = tuple[str, int]


def key_of(site: ProbeSite) -> Key:
    return site.path, site.result


def matching_sites(before: Sequence[ProbedValue], after: Sequence[ProbedValue]) -> dict[Key, Key]:
    """Sites match by location and name of their ops if unique, otherwise by the order of ops of equal name and type.

    Where ops replace others, each is matched with the one at its position if there are as many and the types are equal,
    otherwise the last with the last: the final result of both.
    """
    pairs: dict[Key, Key] = {}
    located = _once(after, _location)
    for each, value in _once(before, _location).items():
        if each in located and value.dtype == located[each].dtype and value.shape == located[each].shape:
            pairs[key_of(value.site)] = key_of(located[each].site)
    taken = set(pairs.values())
    one = [value for value in before if key_of(value.site) not in pairs]
    other = [value for value in after if key_of(value.site) not in taken]
    pairs.update((key_of(a.site), key_of(b.site)) for a, b in _aligned(one, other))
    return pairs


def _aligned(before: Sequence[ProbedValue], after: Sequence[ProbedValue]) -> Iterator[tuple[ProbedValue, ProbedValue]]:
    matcher = SequenceMatcher(None, list(map(_kind, before)), list(map(_kind, after)), autojunk=False)
    for tag, start, end, start_, end_ in matcher.get_opcodes():
        one, other = before[start:end], after[start_:end_]
        if tag == "replace" and len(one) != len(other):
            one, other = one[-1:], other[-1:]
        if tag in ("equal", "replace"):
            yield from (pair for pair in zip(one, other, strict=True) if _kind(pair[0])[2:] == _kind(pair[1])[2:])


def _kind(value: ProbedValue) -> tuple[Hashable, ...]:
    return value.site.op, value.site.result, value.dtype, value.shape


def _location(value: ProbedValue) -> Hashable:
    # A position in unnamed text does not identify the origin of the op.
    known = value.site.location and not value.site.location.startswith('"-":')
    return (value.site.location, value.site.op, value.site.result) if known else None


def _once(values: Sequence[ProbedValue], identity: Callable[[ProbedValue], Hashable]) -> dict[Hashable, ProbedValue]:
    """Only values with a unique identity."""
    numbers = Counter(map(identity, values))
    return {each: value for value in values if (each := identity(value)) is not None and numbers[each] == 1}
