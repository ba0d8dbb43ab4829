"""The doors of rooms: what a package says that it gives, to type checkers and when it runs, is the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import doors
import pytest

import vhlo_tools

pytestmark = pytest.mark.every_python

PACKAGE = Path(vhlo_tools.__file__).parent
DOORS = sorted(path.parent for path in [PACKAGE / "__init__.py", *PACKAGE.glob("*/__init__.py")])


def package_of(folder: Path) -> str:
    return ".".join(folder.relative_to(PACKAGE.parent).parts)


def typed(folder: Path) -> dict[str, str]:
    """What a type checker is told: names, and the modules that they come from."""
    body = ast.parse((folder / "__init__.py").read_text()).body
    blocks = [each for each in body if isinstance(each, ast.If) and ast.unparse(each.test) == "TYPE_CHECKING"]
    imports = [each for block in blocks for each in block.body if isinstance(each, ast.ImportFrom)]
    return {alias.name: each.module or "" for each in imports for alias in each.names}


@pytest.mark.parametrize("folder", DOORS, ids=package_of)
def test_a_door_gives_what_it_says(folder: Path) -> None:
    package = import_module(package_of(folder))
    assert package.__doc__
    names = typed(folder)
    assert set(dir(package)) >= set(names)
    if names:
        assert set(package.__dir__()) == set(names)
    for name, module in names.items():
        assert getattr(package, name) is getattr(import_module(module), name)


@pytest.mark.parametrize("folder", DOORS, ids=package_of)
def test_no_name_is_that_of_a_module(folder: Path) -> None:
    # Importing the module would put it in the place of what the door gives.
    modules = {path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert not modules & set(typed(folder))


def test_the_table_is_written_anew() -> None:
    assert doors.TABLE.read_text(encoding="utf-8") == doors.table(), "run scripts/doors.py"
    assert len(doors.exports()) == sum("lazy_exports(__name__)" in (each / "__init__.py").read_text() for each in DOORS)


#: Rooms whose modules others import by the name of a framework, a command or a function that a child process calls.
OPEN = ("cli", "integrations", "bindings.isolation", "bindings.xla")
MLIR = ("jaxlib", "jax", "torch_mlir", "mlir")
#: Integrations import the framework that they are for.
MAY_IMPORT_MLIR = {"bindings", "integrations"}


def imports() -> Iterator[tuple[str, str, str, str]]:
    """Give the room and the module that import, and the room and the module that are imported."""
    for path in PACKAGE.rglob("*.py"):
        module = path.relative_to(PACKAGE).with_suffix("")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and not node.level:
                whole = node.module or ""
                # A name may be a module.
                inner = [f"{whole}.{each.name}" for each in node.names]
                targets = [each if is_module(each) else whole for each in inner]
            elif isinstance(node, ast.Import):
                targets = [each.name for each in node.names]
            else:
                continue
            for target in targets:
                first, _, rest = target.partition(".")
                yield module.parts[0], str(module), rest.partition(".")[0] if first == PACKAGE.name else "", target


def is_module(name: str) -> bool:
    place = PACKAGE.parent.joinpath(*name.split("."))
    return place.is_dir() or place.with_suffix(".py").is_file()


def test_a_room_is_entered_by_its_door() -> None:
    found = list(imports())
    assert len(found) > 3000
    entered = {
        f"{module} imports {target}"
        for room, module, other, target in found
        if other not in ("", room) and target.count(".") > 1
        if not target.removeprefix(f"{PACKAGE.name}.").startswith(OPEN)
    }
    assert not entered, "\n".join(sorted(entered))


def test_only_one_room_imports_mlir() -> None:
    assert {room for room, _, _, target in imports() if target.partition(".")[0] in MLIR} <= MAY_IMPORT_MLIR


def test_an_unknown_name_is_no_part_of_a_room() -> None:
    with pytest.raises(AttributeError, match="'vhlo_tools.compat' has no attribute 'nonsense'"):
        import_module("vhlo_tools.compat").nonsense  # noqa: B018
