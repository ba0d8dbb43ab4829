"""Upgrade and downgrade of single ops by the steps and constraints of the specification, and their wording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from math import prod
from typing import TYPE_CHECKING, Any

from vhlo_tools.errors import DowngradeError, InvalidProgramError, UnsupportedFeatureError
from vhlo_tools.findings import Finding
from vhlo_tools.records import dataclass
from vhlo_tools.spec.specification import known_specification, structures_in

if TYPE_CHECKING:
    from vhlo_tools.findings import FindingKind
    from vhlo_tools.spec.ops import Constraint, Default, Op, OpStep, OpVersion, Structure
    from vhlo_tools.spec.specification import Specification
    from vhlo_tools.version import Version

# Human-readable text for version ranges, steps and constraints


def life_text(low: Version | None, high: Version | None) -> str:
    """Format a range of versions: ``0.9.0 to 1.4.0``, ``1.5.0 to current``."""
    return f"{low} to {high or 'current'}"


def joined(names: Sequence[str], word: str = "and") -> str:
    """Format a list in a sentence: ``a, b and c``."""
    return f"{', '.join(names[:-1])} {word} {names[-1]}" if len(names) > 1 else "".join(names)


def structure_text(value: Structure) -> str:
    """Return the case of an enum, the type of a type attribute, or all of it as JSON."""
    if "case" in value:
        return str(value["case"])
    if set(value) == {"attribute", "type"}:
        return structure_text(value["type"])
    if set(value) == {"type"}:
        return str(value["type"])
    # Imported here because most structures are short.
    import json

    return json.dumps(value)


def constraint_text(constraint: Constraint) -> str:
    if constraint.requires == "same_element_types":
        return "operands and results of different element types"
    if constraint.requires == "operands_do_not_mix":
        types = constraint.types
        among = joined(types) if len(types) < 4 else f"{types[0]} ... {types[-1]} ({len(types)} types)"
        return f"different element types of {joined(constraint.operands)} among {among}"
    names = joined(constraint.attributes or constraint.operands, "or")
    return f"{structure_text(constraint.value) if constraint.value is not None else constraint.kind} as {names}"


def step_texts(step: OpStep) -> Iterator[tuple[str, str, bool]]:
    """Yield the direction, the text, and whether the part is a guard, which can refuse."""
    for name, default in step.added.items():
        yield "upgrade", f"{name} is set to {default}", False
    for name in step.removed:
        yield "upgrade", f"{name} is removed", False
    if not (step.added or step.removed):
        yield "upgrade", "only the name changes", False
    for name, default in step.removed.items():
        yield "downgrade", f"{name} is set to {default}", False
    for name, default in step.added.items():
        yield "downgrade", f"only if {name} is {default}", True
    if step.single:
        yield "downgrade", f"only with one value each of {joined(step.single)}", True
    if step.empty:
        yield "downgrade", f"only without {joined(step.empty)}", True


# Upgrade and downgrade of single ops by the steps and constraints of a specification alone
#
# An op is plain data here: its attributes and the types of its values are structures as in ``defaults.toml``. Readers
# of bytes and of text that produce such ops share these rules.


@dataclass(frozen=True, slots=True)
class OpStructure:
    name: str  # of its op version, without dialect: ``my_op_v1``
    attributes: Mapping[str, Structure] = field(default_factory=dict, hash=False)
    operands: tuple[Structure, ...] = field(default=(), hash=False)  # types
    results: tuple[Structure, ...] = field(default=(), hash=False)  # types
    regions: int = 0  # their number


@dataclass(frozen=True, slots=True)
class Blocker:
    """A reason why an op cannot be in some versions."""

    feature: str  # its id, or the name of the op if it is no feature
    kind: FindingKind
    reason: str  # the end of a sentence that begins with the op
    since: Version  # the first version that allows it
    floor: Version  # the first version that refuses it; in older versions it no longer occurs
    readers_accept_until: Version | None = None  # the last version whose readers accept it unchanged


def blockers(operation: OpStructure, specs: Specification | None = None) -> Iterator[Blocker]:
    """Yield what in the versions, steps and constraints of its op excludes ``operation`` from older versions.

    The types, attributes and cases in the op are not checked; :func:`obstacles` checks them for one version.
    """
    specs = specs or known_specification()
    op, version = _checked(operation, specs)
    oldest = specs.versions[0].version
    while True:
        for constraint in op.constraints:
            applies = version.number in constraint.versions and version.min < constraint.since
            if applies and not _holds(constraint, operation, version):
                reason = f"it has {constraint_text(constraint)}"
                until = constraint.readers_accept_until
                yield Blocker(constraint.feature, "constraint", reason, constraint.since, version.min, until)
        step, older = _step(op, version, up=False)
        if step is None or older is None:
            if version.min > oldest:
                feature = next((f.id for f in specs.features_of(op.name) if f.introduced == version.min), op.name)
                yield Blocker(feature, "op", f"{op.name} is introduced in {version.min}", version.min, oldest)
            return
        for reason in _guards(operation, step, version, specs):
            yield Blocker(step.feature or version.name, "attribute", reason, version.min, oldest)
        operation = _changed(operation, older, step.added, step.removed, op, specs)
        version = older


def floor_of(version: OpVersion, attribute: str, specs: Specification | None = None) -> Version:
    """Return the oldest version of VHLO down to which ``attribute`` of an op stays unchanged."""
    specs = specs or known_specification()
    op = specs.op(version.op)
    while op is not None:
        step, older = _step(op, version, up=False)
        if step is None or older is None or attribute in step.added:
            break
        version = older
    return version.min


def upgrade(operation: OpStructure, to: Version, specs: Specification | None = None) -> OpStructure:
    specs = specs or known_specification()
    op, version = _checked(operation, specs)
    if to.minor_release < version.min:
        raise ValueError(f"{version.name} begins at {version.min}: changing it to {to} is a downgrade")
    while not version.is_in(to):
        step, newer = _step(op, version, up=True)
        if step is None or newer is None:
            gone = f"{version.name} is not in StableHLO {to}: its last version is {version.max}"
            raise UnsupportedFeatureError(gone, [Finding(version.name, "error", "op", gone, op.name, target=to)])
        operation = _changed(operation, newer, step.removed, step.added, op, specs)
        version = newer
    return operation


def downgrade(operation: OpStructure, to: Version, specs: Specification | None = None) -> OpStructure:
    """A ``DowngradeError`` has findings that name the features at fault, with reasons."""
    specs = specs or known_specification()
    op, version = _checked(operation, specs)
    if version.max is not None and to.minor_release > version.max:
        raise ValueError(f"{version.name} ends at {version.max}: changing it to {to} is an upgrade")
    source = operation
    while not version.is_in(to):
        step, older = _step(op, version, up=False)
        if step is None or older is None:
            reason = f"{op.name} is introduced in {version.min}"
            feature = next((f.id for f in specs.features_of(op.name) if f.introduced == version.min), op.name)
            raise _refusal(source, to, [_finding(specs, op, feature, "op", reason, version.min, to)])
        guards = tuple(_guards(operation, step, version, specs))
        if guards:
            feature = step.feature or version.name
            raise _refusal(
                source, to, [_finding(specs, op, feature, "attribute", why, version.min, to) for why in guards]
            )
        operation = _changed(operation, older, step.added, step.removed, op, specs)
        version = older
    found = tuple(obstacles(operation, to, specs))
    if found:
        raise _refusal(source, to, found)
    return operation


def obstacles(operation: OpStructure, to: Version, specs: Specification | None = None) -> Iterator[Finding]:
    """Yield findings on why ``operation`` cannot be in ``to`` although its op version is.

    The reason is a constraint, or a newer type, attribute or case in the op.
    """
    specs = specs or known_specification()
    op, version = _checked(operation, specs)
    to = to.minor_release
    for constraint in op.constraints:
        applies = version.number in constraint.versions and to < constraint.since
        if applies and not _holds(constraint, operation, version):
            reason = f"it has {constraint_text(constraint)}"
            yield _finding(specs, op, constraint.feature, "constraint", reason, constraint.since, to)
    young: dict[str, tuple[FindingKind, Version]] = {}
    for node in structures_in([*operation.attributes.values(), *operation.operands, *operation.results]):
        young |= {name: (kind, since) for name, kind, since in _introduced(node, specs) if since > to}
    for name, (kind, since) in young.items():
        feature = next((f.id for f in specs.features_of(name.partition(".")[0]) if f.introduced == since), name)
        yield _finding(specs, op, feature, kind, f"it contains {name}", since, to)


def _introduced(node: Structure, specs: Specification) -> Iterator[tuple[str, FindingKind, Version]]:
    kinds: tuple[FindingKind, ...] = ("attribute", "type")
    for kind in kinds:
        name = node.get(kind)
        spelling = specs.kinds[kind].get(name) if isinstance(name, str) else None
        if spelling is not None and spelling.min is not None:
            yield spelling.name, kind, spelling.min
    enum = specs.enum(str(node.get("attribute")))
    case = enum.case(str(node.get("case"))) if enum else None
    if enum is not None and case is not None:
        yield f"{enum.name}.{case.name}", "attribute", case.min


def _checked(operation: OpStructure, specs: Specification) -> tuple[Op, OpVersion]:
    version = specs.op_versions.get(operation.name)
    op = specs.op(version.op) if version else None
    if version is None or op is None:
        raise InvalidProgramError(f"{operation.name} is not an op version of this specification")
    if set(operation.attributes) != set(version.attributes):
        expected = ", ".join(version.attributes) or "none"
        raise InvalidProgramError(f"{operation.name} has the attributes {expected}, not {sorted(operation.attributes)}")
    for what, slots, count in (
        ("operands", version.operands, len(operation.operands)),
        ("results", version.results, len(operation.results)),
        ("regions", version.regions, operation.regions),
    ):
        fixed = sum(not slot.variadic for slot in slots)
        if count < fixed or (count > fixed and fixed == len(slots)):
            raise InvalidProgramError(f"{operation.name} cannot have {count} {what}")
    return op, version


def _step(op: Op, version: OpVersion, *, up: bool) -> tuple[OpStep | None, OpVersion | None]:
    """Return the step from ``version`` to its neighbour, and the neighbour; ``None`` for each that does not exist."""
    for step in op.steps:
        here, there = (step.older, step.newer) if up else (step.newer, step.older)
        if here == version.number and abs(here - there) == 1:
            return step, next((each for each in op.versions if each.number == there), None)
    return None, None


def _changed(
    operation: OpStructure,
    version: OpVersion,
    dropped: Mapping[str, str],
    gained: Mapping[str, str],
    op: Op,
    specs: Specification,
) -> OpStructure:
    values = {name: value for name, value in operation.attributes.items() if name not in dropped}
    values |= {name: _value(_default(specs, default), operation, specs) for name, default in gained.items()}
    ordered = {name: values[name] for name in version.attributes}
    return replace(operation, name=version.name, attributes=ordered)


def _default(specs: Specification, identifier: str) -> Default:
    default = specs.default(identifier)
    if default is None:
        raise InvalidProgramError(f"the specification has no default {identifier}: `vhlo spec lint` reports its uses")
    return default


def _value(default: Default, operation: OpStructure, specs: Specification) -> Structure:
    if default.value is not None:
        return default.value
    # "no_padding", the only computation: two zeros for each spatial dimension.
    slices = specs.op_versions[operation.name].operand_slices(len(operation.operands))
    (of,) = operation.operands[slices[str(default.of)]]
    rank = len(of.get("shape", ()))
    if of.get("type") != "tensor_v1" or rank < 2:
        raise InvalidProgramError(f"{operation.name} requires a tensor with at least two dimensions as {default.of}")
    shape = [rank - 2, 2]
    type_ = {"type": "tensor_v1", "shape": shape, "element": {"type": "i64_v1"}}
    return {"attribute": "tensor_v1", "type": type_, "data": bytes(8).hex() if prod(shape) else ""}


# Guards


def _guards(operation: OpStructure, step: OpStep, newer: OpVersion, specs: Specification) -> Iterator[str]:
    """Yield the reasons why ``step`` refuses to downgrade ``operation``."""
    for name, identifier in step.added.items():
        if not matches(_default(specs, identifier), operation.attributes[name]):
            yield f"{name} is not its default, {identifier}"
    counts = (("operands", newer.operands, operation.operands), ("results", newer.results, operation.results))
    for what, slots, values in counts:
        names = [slot.name for slot in slots if slot.variadic and slot.name in step.single]
        # Several variadics of one op have equal numbers of values.
        if names and len(values) != len(slots):
            yield f"it has {len(values)} {what}, but only one of each can be written"
    for name in step.empty:
        if operation.regions > len([slot for slot in newer.regions if slot.name != name]):
            yield f"it has {name}"


def matches(default: Default, value: Structure) -> bool:
    """The rules of equality are those in ``defaults.toml``."""
    if default.value is None:
        return False
    if default.equals == "no_elements":
        return value.get("attribute") == default.value["attribute"] and not value.get("data")
    return _same(value, default.value, zeros=default.equals == "zero")


def _same(one: Any, other: Any, *, zeros: bool = False) -> bool:
    """Compare two structures; unlike ``==``, 0.0 is not -0.0 (unless ``zeros``), True is not 1, and NaN equals NaN.

    A list equals a tuple. Shared parts are compared once: written out, they may be exponentially many.
    """
    pending, seen = [(one, other)], set[tuple[int, int]]()
    while pending:
        left, right = pending.pop()
        if left is right or (id(left), id(right)) in seen:
            continue
        # Both belong to structures that are alive, so that no other object has their ids.
        seen.add((id(left), id(right)))
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            if left.keys() != right.keys():
                return False
            pending += [(left[key], right[key]) for key in left]
        elif _is_list(left) and _is_list(right):
            if len(left) != len(right):
                return False
            pending += zip(left, right, strict=True)
        elif isinstance(left, float) and isinstance(right, float):
            if not (zeros and left == right == 0) and repr(left) != repr(right):
                return False
        elif type(left) is not type(right) or left != right:
            return False
    return True


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


# Constraints


def _holds(constraint: Constraint, operation: OpStructure, version: OpVersion) -> bool:
    if constraint.requires == "same_element_types":
        pairs = zip(operation.operands, operation.results, strict=False)
        return all(_same(before.get("element"), after.get("element")) for before, after in pairs)
    if constraint.requires == "attributes_are_not":
        values = [operation.attributes[name] for name in constraint.attributes]
        if constraint.value is None:
            return all(value.get("attribute") != constraint.kind for value in values)
        return not any(_same(value, constraint.value) for value in values)
    slices = version.operand_slices(len(operation.operands))
    named = [type_ for name in constraint.operands for type_ in operation.operands[slices[name]]]
    if constraint.requires == "operands_are_not":
        return all(type_.get("type") != constraint.kind for type_ in named)
    # "operands_do_not_mix"
    elements = {type_.get("element", {}).get("type") for type_ in named}
    return len(elements & set(constraint.types)) <= 1


# Refusals


def _finding(
    specs: Specification, op: Op, feature: str, kind: FindingKind, reason: str, since: Version, to: Version
) -> Finding:
    known = specs.feature(feature)
    title = f"; {known.title} needs StableHLO {since}" if known else f"; this requires StableHLO {since}"
    return Finding(
        feature,
        "error",
        known.kind if known else kind,
        f"{op.name} cannot be in {to}: {reason}{title} ({feature})",
        op=op.name,
        introduced=since,
        target=to,
        remedy=f"{known.remedy}; or choose {since} or later" if known else f"choose {since} or later",
    )


def _refusal(operation: OpStructure, to: Version, findings: Sequence[Finding]) -> DowngradeError:
    return DowngradeError(f"{operation.name} cannot be downgraded to StableHLO {to}", findings)
