"""Values of two programs that stand for each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from difflib import SequenceMatcher

from vhlo_tools.interpreter import ProbedValue, ProbeSite

__all__ = ["Key", "key_of", "matching_sites"]

#: What is known of a result of an op: where the op stands, and which result it is.
Key = tuple[str, int]


def key_of(site: ProbeSite) -> Key:
    """Return what a site is known by."""
    return site.path, site.result


def matching_sites(before: Sequence[ProbedValue], after: Sequence[ProbedValue]) -> dict[Key, Key]:
    """Return, for sites of one program, those of the other that stand for them.

    They are matched by the location and the name of their ops where these occur once, or else by the order of ops of
    the same name and type. Where ops stand in the place of others, each is matched with the one of its type if there
    are as many, or else the last of them: what came of all.

    Args:
        before: A value of each site of one program, in order.
        after: The same of the other.
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
    # A position in text that has no name says nothing of where the op comes from.
    known = value.site.location and not value.site.location.startswith('"-":')
    return (value.site.location, value.site.op, value.site.result) if known else None


def _once(values: Sequence[ProbedValue], identity: Callable[[ProbedValue], Hashable]) -> dict[Hashable, ProbedValue]:
    """Return the values that alone have an identity, by that."""
    numbers = Counter(map(identity, values))
    return {each: value for value in values if (each := identity(value)) is not None and numbers[each] == 1}
