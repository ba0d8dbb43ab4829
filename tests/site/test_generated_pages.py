"""The reference has every command and every public name, and the specification all that is in the data."""

from __future__ import annotations

import re

import pytest
from api_pages import GROUPS, OTHER, api_pages, grouped_names, navigation as api_navigation
from command_pages import command_pages, commands, navigation as command_navigation
from pages import Page
from specification_pages import navigation as specification_navigation, specification_pages

import vhlo_tools
from vhlo_tools.cli.helping import HELP
from vhlo_tools.spec import known_releases, known_specification

SPECS = known_specification()
COMMANDS = {page.uri: page.text for page in command_pages()}
SPECIFICATION = {page.uri: page.text for page in specification_pages(SPECS)}


def leaves(entry: object) -> list[str]:
    if isinstance(entry, dict):
        return [page for value in entry.values() for page in leaves(value)]
    return [page for value in entry for page in leaves(value)] if isinstance(entry, list) else [str(entry)]


@pytest.mark.parametrize(
    ("navigation", "pages"),
    [
        (command_navigation(), command_pages()),
        (api_navigation(), api_pages()),
        (specification_navigation(SPECS), specification_pages(SPECS)),
    ],
    ids=["commands", "python", "specification"],
)
def test_the_navigation_has_every_page_once(navigation: object, pages: list[Page]) -> None:
    assert sorted(leaves(navigation)) == sorted(page.uri for page in pages)


def test_every_command_has_its_options_and_its_example() -> None:
    text = "\n".join(COMMANDS.values())
    for words, command in commands():
        name = " ".join(words)
        assert re.search(rf"^#+ vhlo {name}$", text, re.MULTILINE)
        assert f"[`vhlo {name}`]" in COMMANDS["reference/commands/README.md"]
        for parameter in command.params:
            assert all(option in text for option in parameter.opts if option.startswith("-"))
    for name, help_of in HELP.items():
        assert (
            not name
            or name in {"alias", "manifest", "constants", "golden", "store", "spec"}
            or all(f"$ {line}" in text for line in help_of.example.splitlines())
        )


def test_every_public_name_is_on_one_page() -> None:
    named = [name for _, names in grouped_names().values() for name in names]
    assert sorted(named) == sorted(set(vhlo_tools.__all__) - {"__version__"})
    assert OTHER not in grouped_names(), "put the new names into a group of site/api_pages.py"
    (page,) = (page for page in api_pages() if page.uri.endswith("aliases.md"))
    assert page.text.count("::: vhlo_tools.") == len(GROUPS["aliases"][1])


def test_a_name_that_is_not_public_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api_pages.GROUPS", {"a": ("A", ("nothing",))})
    with pytest.raises(ValueError, match="does not have: nothing"):
        grouped_names()


def test_every_op_is_on_the_page_of_its_family_with_all_its_versions() -> None:
    for op in SPECS.ops:
        page = SPECIFICATION[f"specification/ops/{op.family}.md"]
        assert f"\n## {op.name}\n" in page
        assert all(page.count(f"`{version.name}`") >= 2 for version in op.versions)


def test_every_entry_and_every_release_is_somewhere() -> None:
    for kind, entries in {"types": SPECS.types, "attributes": SPECS.attributes}.items():
        assert all(f"`{each.name}`" in SPECIFICATION[f"specification/{kind}.md"] for each in entries)
    enums = SPECIFICATION["specification/enums.md"]
    assert all(f"`{case.name}`" in enums for enum in SPECS.enums for case in enum.cases)
    releases = SPECIFICATION["specification/releases.md"]
    assert all(f"`{release}`" in releases for release in known_releases())
    versions = SPECIFICATION["specification/versions.md"]
    assert all(f"\n## {each.version}\n" in versions for each in SPECS.versions)


@pytest.mark.parametrize("feature", SPECS.features, ids=lambda feature: feature.id)
def test_every_feature_has_its_remedy_and_its_expansions(feature: object) -> None:
    from vhlo_tools.spec import Feature

    assert isinstance(feature, Feature)
    page = SPECIFICATION["specification/features.md"]
    _, _, after = page.partition(f"\n## {feature.id}\n")
    section = after.partition("\n## ")[0].replace("\\", "")
    assert feature.remedy in section
    for expansion in feature.expansions:
        assert f"({expansion.effect}) reaches {expansion.to}" in section
        assert expansion.gives_up is None or expansion.gives_up in section
