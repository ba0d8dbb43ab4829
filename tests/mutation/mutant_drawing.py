"""The mutants of the core, and the draw: cosmic-ray's operators of one token, where the code runs.

Every token is drawn at most once, even if several mutants could be made of it. The rank of a token is a hash of the
seed and of its line and function, not of the line's number or file: after an edit elsewhere, or a move to another file,
the rest of the draw is the same.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import parso
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.ast.ast_query import ASTQuery
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator
from mutant_tables import ROOT, Equivalent, Part, Plan

#: The operators of cosmic-ray that change a token into its opposite or neighbour. It also turns every comparison into
#: all seven others, and every sum into a power; these say little more about tests. A `/` joins paths nearly everywhere,
#: and anything else raises there.
_CORE = (
    *(
        f"ReplaceComparisonOperator_{pair}"
        for pair in (
            *("Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is", "Lt_LtE", "Lt_GtE", "LtE_Lt", "LtE_Gt"),
            *("Gt_GtE", "Gt_LtE", "GtE_Gt", "GtE_Lt"),
        )
    ),
    *(
        f"ReplaceBinaryOperator_{pair}"
        for pair in (
            *("Add_Sub", "Sub_Add", "Mul_FloorDiv", "FloorDiv_Mul", "Mod_FloorDiv", "Pow_Mul"),
            *("LShift_RShift", "RShift_LShift", "BitAnd_BitOr", "BitOr_BitAnd", "BitXor_BitAnd"),
        )
    ),
    *(f"ReplaceUnaryOperator_Delete_{name}" for name in ("Not", "USub", "Invert")),
    *("ReplaceAndWithOr", "ReplaceOrWithAnd", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "NumberReplacer"),
)
#: Conditions that another operator changes.
_COMPOUND = frozenset({"comparison", "not_test", "and_test", "or_test", "namedexpr_test"})

Position = tuple[int, int]


class TurnMembership(Operator):
    """Change ``in`` into ``not in`` and back; cosmic-ray has no operator for that."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Position, Position]]:
        """Yield the positions of ``in`` and ``not in`` in a comparison."""
        if node.type == "comparison":
            for operator in node.children[1::2]:
                if operator.get_code().split() in (["in"], ["not", "in"]):
                    yield operator.start_pos, operator.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """Replace one of them."""
        places = [i for i in range(1, len(node.children), 2) if "in" in node.children[i].get_code().split()]
        turned = " in" if "not" in node.children[places[index]].get_code().split() else " not in"
        node.children[places[index]] = parso.parse(turned)
        return node

    @classmethod
    def examples(cls) -> tuple[()]:
        """Return none: they are for cosmic-ray's own tests."""
        return ()


class NegateCondition(Operator):
    """Negate a condition that is a name or a call, of a statement, an expression or a comprehension."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Position, Position]]:
        for place in self._conditions(node):
            yield node.children[place].start_pos, node.children[place].end_pos

    @staticmethod
    def _conditions(node: Any) -> list[int]:
        children = getattr(node, "children", [])
        places: Iterable[int] = ()
        if node.type in ("if_stmt", "while_stmt", "comp_if"):
            places = (i for i, child in enumerate(children, 1) if child.type == "keyword" and child.value != "else")
        elif node.type == "test":
            places = (2,)
        return [place for place in places if children[place].type not in _COMPOUND]

    def mutate(self, node: Any, index: int) -> Any:
        """Negate one of them."""
        place = self._conditions(node)[index]
        node.children[place] = parso.parse(f" not{node.children[place].get_code()}")
        return node

    @classmethod
    def examples(cls) -> tuple[()]:
        """Return none: they are for cosmic-ray's own tests."""
        return ()


_OWN = {operator.__name__: operator for operator in (TurnMembership, NegateCondition)}


def operator_named(name: str) -> Any:
    return _OWN[name]() if name in _OWN else get_operator(f"core/{name}")()


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module with one token changed."""

    key: str  # the name of the mutant in files of results; a hash of its function and line
    path: str  # the module, from the root of the checkout
    line: int  # the number of the line, from 1
    function: str  # the function or class around, or nothing
    operator: str  # the name of the operator
    occurrence: int  # the number of the place among those of the operator in the module
    above: str  # the line above, stripped
    before: str  # the line, stripped
    after: str  # the line of the mutant, stripped
    part: Part  # the part of a room that it belongs to

    def is_listed(self, listed: Iterable[Equivalent]) -> bool:
        """Return whether it is among mutants that are listed as equivalent."""
        return any(
            (self.path, self.before, self.after) == (each.file, each.line, each.mutant)
            and each.above in ("", self.above)
            for each in listed
        )


@dataclass(frozen=True, slots=True)
class _Site:
    """A token that operators can change: its rank in the draw, and the operators with occurrences, best first."""

    rank: str
    path: str
    position: Position
    function: str
    choices: tuple[tuple[str, int], ...]
    part: Part


def _digest(*words: object) -> str:
    return hashlib.sha256("\0".join(map(str, words)).encode()).hexdigest()[:16]


def _left_out(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield code that is not mutated, because it does not run or because mypy or a linter checks it.

    That is annotations, aliases of unions, decorators (``frozen``, ``slots``, the size of a cache), blocks under
    ``TYPE_CHECKING``, and the ``strict=`` of ``zip``, which asserts.
    """
    for node in ast.walk(tree):
        match node:
            case ast.If(test=ast.Name("TYPE_CHECKING")):
                yield node
            case ast.AnnAssign():
                yield node.annotation
            case ast.arg(annotation=ast.expr() as annotation):
                yield annotation
            case ast.FunctionDef() | ast.ClassDef() | ast.AsyncFunctionDef():
                yield from node.decorator_list
                if not isinstance(node, ast.ClassDef) and node.returns is not None:
                    yield node.returns
            case ast.Call(func=ast.Name("zip")):
                yield from (keyword for keyword in node.keywords if keyword.arg == "strict")
    yield from (node.value for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp))


def _spans(source: str) -> list[tuple[Position, Position]]:
    lines = source.splitlines()

    def position(line: int, offset: int) -> Position:
        return line, len(lines[line - 1].encode()[:offset].decode())

    return [
        (position(node.lineno, node.col_offset), position(node.end_lineno, node.end_col_offset))
        for node in _left_out(ast.parse(source))
        if isinstance(node, ast.expr | ast.stmt | ast.keyword)
        and node.end_lineno is not None
        and node.end_col_offset is not None
    ]


def _sites(path: str, part: Part, seed: int) -> Iterator[_Site]:
    source = (ROOT / path).read_text(encoding="utf-8")
    lines, spans = source.splitlines(), _spans(source)
    found: dict[Position, tuple[str, list[tuple[str, int]]]] = {}
    nodes = list(ast_nodes(get_ast(source)))
    for name in (*_CORE, *_OWN):
        operator, occurrence = operator_named(name), 0
        for node in nodes:
            for start, _ in operator.mutation_positions(node):
                if not any(first <= start < last for first, last in spans):
                    function = ASTQuery(node).get_definition_name() or ""
                    found.setdefault(start, (function, []))[1].append((name, occurrence))
                occurrence += 1
    seen: Counter[tuple[str, str, int]] = Counter()
    for start, (function, choices) in sorted(found.items()):
        line = lines[start[0] - 1]
        place = (function, line.strip(), start[1] - (len(line) - len(line.lstrip())))
        rank = _digest(seed, *place, seen[place])
        seen[place] += 1
        # The occurrence counts through the whole module, so it must not be part of the rank.
        ranked = sorted(enumerate(choices), key=lambda choice: _digest(rank, choice[0], choice[1][0]))
        yield _Site(rank, path, start, function, tuple(choice for _, choice in ranked), part)


def _mutant(site: _Site) -> Mutant | None:
    """Return the first mutant that compiles: cosmic-ray takes the ``*`` of a signature for an operator."""
    source = (ROOT / site.path).read_text(encoding="utf-8")
    line = site.position[0]
    for name, occurrence in site.choices:
        mutated = mutate_code(source, operator_named(name), occurrence)
        try:
            if mutated is None or ast.dump(ast.parse(mutated)) == ast.dump(ast.parse(source)):
                continue
        except SyntaxError:
            continue
        above, before = (source.splitlines()[at].strip() if at >= 0 else "" for at in (line - 2, line - 1))
        after = mutated.splitlines()[line - 1].strip()
        key = _digest(site.rank, Path(site.path).name, name, after)
        return Mutant(key, site.path, line, site.function, name, occurrence, above, before, after, site.part)
    return None


def mutants_of(part: Part, path: str, seed: int, line: int | None = None) -> Iterator[Mutant]:
    """Yield the mutants of a module or of one of its lines, one per token."""
    for site in _sites(path, part, seed):
        if line in (None, site.position[0]) and (mutant := _mutant(site)) is not None:
            yield mutant


def draw(plan: Plan) -> list[Mutant]:
    """Return the mutants of a plan, the same number for every room.

    The question is asked of the tests of each room; drawn in proportion to size, a small room would have too few
    mutants to answer it.
    """
    drawn: list[Mutant] = []
    rooms = plan.rooms()
    for index, parts in enumerate(rooms.values()):
        wanted = plan.drawn // len(rooms) + (index < plan.drawn % len(rooms))
        sites = (site for part in parts for path in part.source_files() for site in _sites(path, part, plan.seed))
        for site in sorted(sites, key=lambda site: (site.rank, site.path)):
            if not wanted:
                break
            if (mutant := _mutant(site)) is not None:
                drawn.append(mutant)
                wanted -= 1
    return drawn
