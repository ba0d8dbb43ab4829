"""What pages link to in the repository becomes pages, and the links lead there."""

from __future__ import annotations

import pytest
from repository_pages import links_of, place_of, repository_pages, rewrite_links, uri_of
from support.corpus import ROOT

DOCS = ROOT / "docs"


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        (DOCS / "ci.md", "ci.md"),
        (DOCS / "tutorials" / "ci-owner.md", "tutorials/ci-owner.md"),
        (ROOT / "vhlo_tools" / "errors.py", "source/vhlo_tools/errors.py.md"),
        (ROOT / "examples" / "README.md", "source/examples/README.md"),
        (ROOT / "dialect_specs", "source/dialect_specs/README.md"),
    ],
    ids=lambda value: str(value).rpartition("/")[2],
)
def test_where_pages_stand(path: object, uri: str) -> None:
    from pathlib import Path

    assert isinstance(path, Path)
    assert uri_of(path) == uri


def test_links_are_rewritten_to_pages() -> None:
    text = (
        "[a](../vhlo_tools/errors.py) [b](ci.md#x) [c](../examples/README.md#first-run) [d](https://a.b/c) [e](#here)"
    )
    assert rewrite_links(text, "architecture.md") == (
        "[a](source/vhlo_tools/errors.py.md) [b](ci.md#x) [c](source/examples/README.md#first-run) "
        "[d](https://a.b/c) [e](#here)"
    )
    # From a page outside to one inside; and what is not there stays, for the build to complain about.
    assert rewrite_links("[a](docs/ci.md) [b](gone.md)", "source/CONTRIBUTING.md") == "[a](../ci.md) [b](gone.md)"


def test_pages_follow_links_and_hold_what_is_linked() -> None:
    pages = {page.uri: page.text for page in repository_pages([DOCS / "specification.md"])}
    assert not any(uri in pages for uri in ("specification.md", "ci.md"))
    readme = pages["source/dialect_specs/vhlo/ops/README.md"]
    for path in links_of(readme, place_of("source/dialect_specs/vhlo/ops/README.md")):
        assert path.is_relative_to(DOCS) or uri_of(path) in pages
    listed = pages["source/dialect_specs/README.md"]
    assert "[`releases.toml`](releases.toml)" in listed
    source = pages["source/dialect_specs/releases.toml.md"]
    assert (ROOT / "dialect_specs" / "releases.toml").read_text().rstrip() in source
    assert source.startswith("---\nsearch:\n  exclude: true\n")
    assert "```toml\n" in source
