"""Printer of a file as MLIR text in the generic form, without MLIR.

Source: «Generic form» in the MLIR language reference. Names of values are unique in the whole program, because the
bytes mark more ops as isolated than the parser treats as such.
"""

from __future__ import annotations

from itertools import count

from vhlo_tools.bytecode.entry_printing import Printer, bare_or_quoted
from vhlo_tools.bytecode.file import File
from vhlo_tools.bytecode.program import Block, Operation, Region
from vhlo_tools.bytecode.traversal import KNOWN_DIALECTS, inherent_attributes


def print_program(file: File, *, debug_info: bool = False) -> str:
    """Entries that remain bytes, such as attributes of other dialects, are printed by name: not to be parsed again."""
    printer = _Program(file, debug_info)
    for op in file.program.operations:
        printer.operation(op, [], "")
    return "".join(printer.out)


class _Program:
    def __init__(self, file: File, debug_info: bool) -> None:
        self.file = file
        self.debug_info = debug_info
        self.entries = Printer(file)
        self.out: list[str] = []
        self.numbers = count()
        self.labels = count()

    def location(self, index: int | None) -> str:
        if not self.debug_info:
            return ""
        return f" loc({'unknown' if index is None else self.entries.location(index)})"

    def operation(self, op: Operation, values: list[tuple[str, int]], indent: str, results: str = "") -> None:
        out = self.out
        name = self.file.op_name(op.name)
        bare = bare_or_quoted(name.encode())
        # In the generic form, names are quoted.
        out.append(f'{indent}{results}"{name}"' if bare == name else f"{indent}{results}{bare}")
        out.append(f"({', '.join(values[index][0] for index in op.operands)})")
        if op.successors:
            out.append(f"[{', '.join(f'^{self.block_names[index]}' for index in op.successors)}]")
        if (
            op.properties is not None
            and self.file.dialect(self.file.dialects.ops[op.name].dialect) not in KNOWN_DIALECTS
        ):
            out.append(f" <properties: 0x{bytes(self.file.properties[op.properties].data).hex()}>")
        if inherent := inherent_attributes(self.file, op):
            texts = (f"{name} = {self.entries.attribute(index)}" for name, index in inherent.items())
            out.append(f" <{{{', '.join(texts)}}}>")
        if op.regions:
            out.append(" (")
            for number, region in enumerate(op.regions):
                out.append(", " if number else "")
                self.region(region, [] if op.isolated else values, indent)
            out.append(")")
        if op.attributes is not None:
            text = self.entries.attribute(op.attributes)
            out.append(f" {text}" if text != "{}" else "")
        operands = ", ".join(self.entries.type(values[index][1]) for index in op.operands)
        types = ", ".join(map(self.entries.type, op.results))
        out.append(f" : ({operands}) -> ({types}){self.location(op.location)}\n")

    def region(self, region: Region, outer: list[tuple[str, int]], indent: str) -> None:
        if not region.blocks:
            self.out.append("{}")
            return
        # Every value of the region is named before its use, because blocks may use each other's values. The names are
        # removed again at the end: copying those from outside would make many small regions quadratic.
        values, position = outer, len(outer)
        values += self.named(region)
        names = [f"bb{next(self.labels)}" for _ in region.blocks]
        saved, self.block_names = getattr(self, "block_names", []), names
        self.out.append("{\n")
        start = position
        for name, block in zip(names, region.blocks, strict=True):
            position = self.block(name, block, values, position, indent)
        self.out.append(f"{indent}}}")
        del values[start:]
        self.block_names = saved

    def named(self, region: Region) -> list[tuple[str, int]]:
        named: list[tuple[str, int]] = []
        for block in region.blocks:
            named += [(f"%{next(self.numbers)}", argument.type) for argument in block.arguments]
            for op in block.operations:
                if len(op.results) == 1:
                    named.append((f"%{next(self.numbers)}", op.results[0]))
                elif op.results:
                    name = f"%{next(self.numbers)}"
                    named += [(f"{name}#{number}", kind) for number, kind in enumerate(op.results)]
        return named

    def block(self, name: str, block: Block, values: list[tuple[str, int]], position: int, indent: str) -> int:
        """Print a block whose first value is ``values[position]``; return the position after its last."""
        arguments = [
            f"{values[position + i][0]}: {self.entries.type(argument.type)}{self.location(argument.location)}"
            for i, argument in enumerate(block.arguments)
        ]
        self.out.append(f"{indent}^{name}{'(' + ', '.join(arguments) + ')' if arguments else ''}:\n")
        position += len(block.arguments)
        for op in block.operations:
            results = ""
            if op.results:
                first = values[position][0].partition("#")[0]
                results = f"{first} = " if len(op.results) == 1 else f"{first}:{len(op.results)} = "
            self.operation(op, values, indent + "  ", results)
            position += len(op.results)
        return position
