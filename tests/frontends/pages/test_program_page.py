"""The page for a program in a real browser: it is drawn, filtered, folded, and used without a mouse."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, expect
from support.chromium import WatchedPage, opened, violations_of

import vhlo_tools as vt

#: Seconds that a reader waits at most for the first view, and characters of a page.
FIRST_VIEW = 3.0
LARGEST = 10_000_000
HOSTILE = "</script><script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\">"


@pytest.fixture(params=["light", "dark"])
def scheme(request: pytest.FixtureRequest) -> Literal["light", "dark"]:
    found: Literal["light", "dark"] = request.param
    return found


def ready(watched: WatchedPage) -> Page:
    """Wait until the picture is drawn."""
    watched.page.wait_for_selector("html[data-drawn]", state="attached", timeout=60_000)
    return watched.page


def redrawn(page: Page, act: Any) -> None:
    """Do something, and wait until the picture is drawn anew."""
    before = page.get_attribute("html", "data-drawn")
    act()
    page.wait_for_selector(f'html[data-drawn]:not([data-drawn="{before}"])', state="attached", timeout=60_000)


@pytest.fixture
def watched(browser: Browser, step: Path) -> Iterator[WatchedPage]:
    with opened(browser, step, size=(1440, 1000)) as found:
        ready(found)
        yield found
        found.check()


def test_all_parts_are_there_and_nobody_is_shut_out(
    browser: Browser, step: Path, scheme: Literal["light", "dark"]
) -> None:
    with opened(browser, step, scheme=scheme, size=(1440, 1000)) as found:
        page = ready(found)
        expect(page.get_by_role("heading", level=1)).to_have_text("transformer_step.mlir")
        titles = page.get_by_role("heading", level=2).all_inner_texts()
        assert titles == ["Time line", "Graph", "Inputs and outputs", "Constants", "Findings"]
        assert page.locator("dl.lines > div").count() == 5
        assert page.locator(".picture .node").count() > 10
        assert violations_of(page) == []
        # With an op chosen, a search, and the tables unfolded.
        page.locator('.tree [role="treeitem"][data-op]').last.click()
        page.locator("#signature summary").click()
        page.get_by_label("Search ops, attributes, types, lines").fill("gather")
        assert violations_of(page) == []
        found.check()


def test_a_narrow_window_has_all_of_it(browser: Browser, step: Path) -> None:
    with opened(browser, step, size=(390, 800)) as found:
        page = ready(found)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert violations_of(page) == []
        found.check()


def test_the_time_line_has_what_blocks_where(watched: WatchedPage) -> None:
    page = watched.page
    # The program needs 1.1.0: each version before refuses it, and releases of these do not read it.
    assert page.locator("#timeline .scroll .timeline .blocks.refused").count() == 13
    row = page.locator("#timeline tbody tr", has_text="gather_scatter_batching_dims")
    expect(row).to_contain_text("Cannot be written for 0.9.0 to 1.0.0.")
    expect(row).to_contain_text("exact expansion down to 0.9.0")
    assert page.locator("#timeline .scroll .timeline .reads").count() > 10
    # Seven versions of jaxlib's releases, and one of TensorFlow's.
    assert page.locator("#timeline .scroll .timeline .refuses").count() == 8
    row.get_by_role("button", name="show").click()
    expect(page.locator(".details h3")).to_have_text(re.compile("^(gather|scatter) #"))


def test_the_reader_chooses_light_or_dark(watched: WatchedPage) -> None:
    page = watched.page
    back = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(back)
    page.get_by_role("button", name="Dark").click()
    assert page.evaluate(back) != light
    assert violations_of(page) == []
    page.get_by_role("button", name="Light").click()
    assert page.evaluate(back) == light


def test_a_click_folds_and_unfolds(watched: WatchedPage) -> None:
    page = watched.page
    page.locator("#graph").scroll_into_view_if_needed()
    rows = page.locator("[role=treeitem]")
    before = rows.count()
    redrawn(page, lambda: page.get_by_role("button", name="Fold all", exact=True).click())
    assert rows.count() == 8
    assert page.locator(".picture .node").count() == 8
    redrawn(page, lambda: page.locator(".picture .node", has_text="@main").click())
    assert rows.count() > 8
    redrawn(page, lambda: page.get_by_role("button", name="Unfold all").click())
    # Every op at once, and nothing twice.
    assert page.locator(".picture .node.op").count() + page.locator(".picture .node.group").count() > 640 > before
    numbers = page.eval_on_selector_all(".picture .node", "all => all.map(each => each.dataset.id)")
    assert len(numbers) == len(set(numbers))


def test_edges_between_groups_have_the_number_of_values(watched: WatchedPage) -> None:
    page = watched.page
    counts = page.locator(".picture text.count").all_text_contents()
    assert counts
    assert all(re.fullmatch("×[0-9,]+", each) for each in counts)


def test_a_chosen_op_says_what_it_is(watched: WatchedPage) -> None:
    page = watched.page
    page.get_by_label("Search ops, attributes, types, lines").fill("dot_general")
    details = page.get_by_role("region", name="Details of the selected op")
    expect(details.get_by_role("heading", level=3)).to_have_text(re.compile("^[0-9]+ ops$"))
    details.get_by_role("button").first.click()
    expect(details.get_by_role("heading", level=3)).to_have_text(re.compile("^dot_general #[0-9]+$"))
    text = details.inner_text()
    for part in ("Operands", "Results", "Attributes", "Source", "lhs_contracting_dimensions", "vhlo.dot_general_v2"):
        assert part in text
    assert re.search(r"make_transformer_step\.py:\d+:\d+\s+in \w+", text)
    # An operand is a way to the op that gives it.
    operand = details.locator("section", has_text="Operands").get_by_role("button").first
    name = operand.inner_text()
    operand.click()
    expect(details.get_by_role("heading", level=3)).to_have_text(name)
    expect(page.locator(".picture .chosen")).to_have_count(1)
    expect(page.locator('[role=treeitem][aria-selected="true"]')).to_have_count(1)


def test_a_search_finds_by_line_attribute_and_feature(watched: WatchedPage) -> None:
    page = watched.page
    search = page.get_by_label("Search ops, attributes, types, lines")
    found = page.get_by_role("region", name="Details of the selected op").get_by_role("heading")
    for query, number in (("_step.py:52", None), ("gather_scatter_batching_dims", 2), ("no such thing", 0)):
        search.fill(query)
        if number is None:
            expect(found).to_have_text(re.compile("^[1-9][0-9]* ops$"))
        else:
            expect(found).to_have_text(f"{number} ops")
    expect(page.locator("#status")).to_have_text("0 ops found")


def test_the_legend_shows_the_ops_of_a_version(watched: WatchedPage) -> None:
    page = watched.page
    button = page.get_by_role("group", name="Ops by the version that they need").get_by_role("button", name="1.1.0")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    assert page.locator(".picture .found").count() > 0
    button.click()
    assert page.locator(".picture .found").count() == 0


def test_findings_are_filtered_and_lead_to_ops(watched: WatchedPage) -> None:
    page = watched.page
    rows = page.locator(".findings > li")
    assert rows.count() == 1
    errors = page.get_by_role("group", name="Levels").get_by_role("button", name=re.compile("^Error"))
    errors.click()
    assert rows.count() == 0
    errors.click()
    page.get_by_label("Filter findings").fill("stablehlo.scatter")
    expect(page.locator("#status")).to_have_text("2 findings shown")
    rows.first.get_by_role("button", name=re.compile("^op #")).first.click()
    expect(page.locator(".details h3")).to_have_text(re.compile("^scatter"))
    page.locator("#findings").get_by_role("link", name="on the time line").click()
    assert page.evaluate("location.hash") == "#feature-gather_scatter_batching_dims"


def test_all_is_done_with_keys(watched: WatchedPage) -> None:
    page = watched.page
    page.locator('[role=treeitem][tabindex="0"]').focus()
    page.keyboard.press("Home")
    focused = "document.activeElement.querySelector('.name')?.textContent"
    assert page.evaluate(focused) == "@main"
    redrawn(page, lambda: page.keyboard.press("ArrowLeft"))
    assert page.evaluate("document.activeElement.getAttribute('aria-expanded')") == "false"
    redrawn(page, lambda: page.keyboard.press("ArrowRight"))
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.getAttribute('aria-level')") == "2"
    page.keyboard.press("End")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowLeft")
    # The picture: moved, zoomed, and the next op chosen.
    picture = page.get_by_role("application")
    picture.focus()
    world = page.locator(".world")
    for key in ("ArrowDown", "+", "-", "0"):
        before = world.get_attribute("transform")
        page.keyboard.press(key)
        assert world.get_attribute("transform") != before, key
    page.keyboard.press(".")
    expect(page.locator(".details h3")).to_have_text(re.compile("#1$"))
    # Nothing holds the focus.
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('.picture') === null")


def test_the_picture_is_moved_and_zoomed_with_mouse_and_fingers(watched: WatchedPage) -> None:
    page = watched.page
    page.locator("#graph").scroll_into_view_if_needed()
    picture, world = page.locator(".picture"), page.locator(".world")
    box = picture.bounding_box()
    assert box is not None
    x, y = box["x"] + 8, box["y"] + box["height"] - 12
    before = world.get_attribute("transform")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y - 40, steps=4)
    page.mouse.up()
    moved = world.get_attribute("transform")
    assert moved != before
    page.keyboard.down("Control")
    page.mouse.wheel(0, -240)
    page.keyboard.up("Control")
    assert world.get_attribute("transform") != moved
    # A wheel without the key scrolls the page.
    zoomed = world.get_attribute("transform")
    page.evaluate("document.activeElement.blur()")
    page.mouse.wheel(0, 100)
    assert world.get_attribute("transform") == zoomed
    # Two fingers.
    chromium = page.context.new_cdp_session(page)

    def touch(kind: str, *points: tuple[float, float]) -> None:
        held = [{"x": box["x"] + x, "y": box["y"] + y, "id": number} for number, (x, y) in enumerate(points)]
        chromium.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": held})

    touch("touchStart", (100, 150), (200, 150))
    touch("touchMove", (80, 150), (320, 150))
    touch("touchEnd")
    (before_scale,), (after_scale,) = (
        re.findall(r"scale\((.*)\)", str(each)) for each in (zoomed, world.get_attribute("transform"))
    )
    assert float(after_scale) > 1.5 * float(before_scale)


def test_a_hundred_thousand_ops_are_folded_and_seen_soon(browser: Browser, tmp_path: Path) -> None:
    # Each with a line of its own, in two hundred functions of the user.
    lines = ["func.func @main(%0: tensor<4xf32>) -> tensor<4xf32> {"]
    lines += [
        f'%{i + 1} = stablehlo.add %{i}, %{max(0, i - 3)} : tensor<4xf32> loc(callsite("f{i // 500}"("m.py":{i + 1}:1) '
        f'at "main"("train.py":{i // 500 + 1}:1)))'
        for i in range(100_000)
    ]
    path = tmp_path / "many.html"
    vt.report("\n".join([*lines, "return %100000 : tensor<4xf32>", "}"])).save(path)
    assert path.stat().st_size < LARGEST
    with opened(browser, path) as found:
        page = ready(found)
        times = page.evaluate(
            "[performance.getEntriesByName('ready')[0].startTime, performance.getEntriesByName('drawn')[0].startTime]"
        )
        print(f"first view after {times[0]:.0f} ms, picture after {times[1]:.0f} ms")
        assert times[0] < 1000 * FIRST_VIEW
        assert times[1] < 2000 * FIRST_VIEW
        assert page.locator("[role=treeitem]").count() < 1000
        page.get_by_label("Search ops, attributes, types, lines").fill("m.py:77777")
        page.get_by_role("region", name="Details of the selected op").get_by_role("button").first.click()
        expect(page.locator(".details h3")).to_have_text(re.compile("^add #"))
        expect(page.locator(".picture .chosen")).to_have_count(1)
        assert violations_of(page) == []
        found.check()


def test_names_of_a_program_stay_text(browser: Browser, tmp_path: Path) -> None:
    name = "".join(f"\\{ord(each):02X}" for each in HOSTILE)
    text = f"""func.func @main(%0: tensor<f32> loc("{name}")) -> (tensor<f32> {{jax.result_info = "{name}"}}) {{
      %1 = stablehlo.custom_call @"{name}"(%0) {{"{name}" = "{name}"}} : (tensor<f32>) -> tensor<f32> loc("{name}":3:4)
      return %1 : tensor<f32>
    }}"""
    path = tmp_path / "hostile.html"
    vt.report(text, name=HOSTILE).save(path)
    with opened(browser, path) as found:
        page = ready(found)
        page.get_by_label("Search ops, attributes, types, lines").fill("custom_call")
        page.get_by_role("region", name="Details of the selected op").get_by_role("button").first.click()
        assert HOSTILE in page.locator(".details").inner_text()
        assert page.title() == f"{HOSTILE} · vhlo report"
        assert page.locator("img").count() == 0
        found.check()


@pytest.mark.parametrize(
    "name", ["saxpy.mlir", "keras_mlp.mlirbc", "sharded_matmul.mlir", "custom_calls.mlir", "symbolic_export.jax_export"]
)
def test_examples_are_drawn(browser: Browser, tmp_path: Path, name: str) -> None:
    path = tmp_path / "page.html"
    vt.report(Path(__file__).parents[3] / "examples" / name).save(path)
    with opened(browser, path) as found:
        page = ready(found)
        assert page.locator(".picture .node").count() > 3
        assert violations_of(page) == []
        found.check()


def test_without_the_library_there_is_all_but_the_picture(browser: Browser, step: Path, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    text = re.sub(r'(id="layout" data-notice=")[^"]*(">)[^<]*', r"\1\2", step.read_text())
    path.write_text(text)
    with opened(browser, path) as found:
        page = found.page
        expect(page.locator(".canvas .notice")).to_contain_text("The tree has every op")
        page.locator('[role="treeitem"][data-op]').last.click()
        expect(page.locator(".details h3")).to_contain_text("#")
        assert violations_of(page) == []
        found.check()


def test_a_page_that_was_changed_says_so(browser: Browser, step: Path, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(re.sub(r'(id="data">)[^<]{40}', r"\1", step.read_text()))
    with opened(browser, path) as found:
        expect(found.page.get_by_role("alert")).to_contain_text("The page cannot be shown")
        assert json.dumps(found.errors) != "[]"
