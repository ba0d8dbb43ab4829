"""The file of a page: what it contains, and what it does not let a program put into it."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from importlib import resources
from pathlib import Path

import pytest
from support.page_data import contents_of, digest, elements_of, policy_of

import vhlo_tools as vt
from vhlo_tools.viewing import ELK, layout_worker
from vhlo_tools.viewing.assembly import _SCRIPTS

#: What would be markup or script if it were not text.
HOSTILE = '</script><script>alert(1)</script><img src=x onerror="alert(2)">{{script}}--><!--'


@pytest.fixture(scope="module")
def page() -> str:
    name = "".join(f"\\{ord(each):02X}" for each in HOSTILE)
    text = f"""func.func @"{name}"(%0: tensor<f32> loc("{name}")) -> (tensor<f32> {{jax.result_info = "{name}"}}) {{
      %1 = stablehlo.custom_call @"{name}"(%0) {{"{name}" = "{name}"}} : (tensor<f32>) -> tensor<f32> loc("{name}":3:4)
      return %1 : tensor<f32>
    }}"""
    return vt.report(text, name=f"{HOSTILE}.mlir").html


def test_names_of_a_program_are_no_markup(page: str) -> None:
    assert "alert(" not in page.replace("&lt;script&gt;alert(1)&lt;/script&gt;", "").replace("alert(2)&quot;", "")
    assert page.count("<script") == 3
    assert "<img" not in page
    held = contents_of(page)
    assert HOSTILE in held["name"]
    assert any(HOSTILE in text for text in held["graph"]["strings"])
    assert HOSTILE in held["inputs"][0]["name"]


def test_a_page_allows_itself_its_own_script_and_nothing_of_a_network(page: str) -> None:
    parts, policy = elements_of(page), policy_of(page)
    assert policy["default-src"] == ["'none'"]
    assert policy["script-src"] == [digest(parts["script"])]
    assert policy["style-src"] == [digest(parts["style"])]
    assert policy["worker-src"] == ["blob:"]
    assert "connect-src" not in policy
    # Its addresses are those of namespaces, and of the source of what it contains.
    own = page.replace(parts["data"], "").replace(parts["layout"], "")
    assert set(re.findall(r"https?://[^\s\"'<]+", own)) <= {"http://www.w3.org/2000/svg", ELK.source}


@pytest.mark.skipif(not layout_worker() and shutil.which("npm") is None, reason="no npm is on this machine")
def test_the_library_is_named_with_its_licence(page: str) -> None:
    assert layout_worker(), "run scripts/page_assets.py"
    assert f"{ELK} lays out the graph: EPL-2.0" in page
    licence = resources.files("vhlo_tools.viewing").joinpath("elkjs", "LICENSE.md").read_text()
    assert "Eclipse Public License" in licence


def test_the_same_program_gives_the_same_page() -> None:
    text = "func.func @main(%0: tensor<f32>) -> tensor<f32> {\nreturn %0 : tensor<f32>\n}"
    assert vt.report(text).html == vt.report(text).html


def test_modules_have_no_names_in_common() -> None:
    # They stand in one scope.
    folder = resources.files("vhlo_tools.viewing").joinpath("web")
    for names in _SCRIPTS.values():
        sources = [folder.joinpath(f"{name}.js").read_text() for name in names]
        found = Counter(
            name
            for source in sources
            for name in re.findall(r"^(?:export )?(?:async )?(?:function|const|class|let) (\w+)", source, re.MULTILINE)
        )
        assert [name for name, number in found.items() if number > 1] == []
        assert all(f'from "./{name}.js"' not in sources[0] for name in names)


def test_a_module_imports_only_what_stands_before_it() -> None:
    folder = resources.files("vhlo_tools.viewing").joinpath("web")
    for names in _SCRIPTS.values():
        for position, name in enumerate(names):
            imported = re.findall(r'from "\./(\w+)\.js"', folder.joinpath(f"{name}.js").read_text())
            assert set(imported) <= set(names[:position]), name


def test_scripts_put_nothing_into_a_page_as_markup() -> None:
    folder = resources.files("vhlo_tools.viewing").joinpath("web")
    for path in folder.iterdir():
        if path.name.endswith(".js"):
            source = path.read_text()
            assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", source)


def test_pages_are_not_written_over_files(tmp_path: Path) -> None:
    page = vt.report("func.func @main(%0: tensor<f32>) -> tensor<f32> {\nreturn %0 : tensor<f32>\n}")
    path = tmp_path / "page.html"
    page.save(path)
    assert path.read_text() == page.html
    with pytest.raises(FileExistsError):
        page.save(path)
    page.save(path, force=True)
