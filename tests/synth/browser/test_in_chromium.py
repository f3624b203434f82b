"""In a real browser: foreign text does nothing, and everything is reached by keyboard."""

import shutil
import threading
from collections.abc import Iterator

import pytest
import uvicorn
from playwright.sync_api import Page, sync_playwright

from records.store.dataset import Dataset
from synth.browser.app import BrowserApp
from synth.browser.serving import listening
from synth.judging.labels import labels_waiting
from tests.synth.browser.shown import hostile_trajectory, reject
from tests.synth.publish.test_report import HOSTILE
from tests.synth.small_dataset import write_dataset

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    folder = tmp_path_factory.mktemp("hostile")
    rows = [(hostile_trajectory(i, HOSTILE), None) for i in ("a", "b")]
    made = write_dataset(folder / "data", rows, domain=HOSTILE, model=HOSTILE, words=HOSTILE)
    reject(made, "b", HOSTILE)
    return made


@pytest.fixture(scope="module")
def address(dataset: Dataset) -> Iterator[str]:
    """What `synth browse` prints, of a server in a thread of this process."""
    with listening(0) as listener:
        app = BrowserApp([dataset], port=listener.getsockname()[1], labeller="ann")
        server = uvicorn.Server(uvicorn.Config(app.asgi, log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        yield app.address
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def page(address: str) -> Iterator[Page]:
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no Chromium on this machine")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        opened = browser.new_page()
        opened.set_default_timeout(120_000)
        opened.goto(address)
        yield opened
        browser.close()


def test_a_hostile_dataset_is_text_in_a_browser(page: Page, address: str) -> None:
    base = address.split("/open")[0]
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("dialog", lambda dialog: complaints.append("dialog"))
    for path in ("/d/data/trajectories", "/d/data/trajectories/b", "/d/data/rows/trajectories"):
        page.goto(f"{base}{path}")
        page.evaluate("() => document.querySelectorAll('details').forEach(d => d.open = true)")
        assert "owned" not in page.title()
        assert "<script>document.title" in page.inner_text("body")
        active = "script, img, iframe, object, a[href^='javascript'], a[href^='http']"
        assert page.locator(active).count() == 0
    page.goto(f"{base}/d/data/trajectories/b")
    assert "[U+202E]right to left" in page.inner_text("body")
    assert all(url.startswith(base) for url in asked)
    assert [text for text in complaints if "favicon" not in text] == []
    radius = "() => getComputedStyle(document.querySelector('.card')).borderRadius"
    assert page.evaluate(radius) == "12px"  # the policy lets the style sheet through


def test_a_verdict_is_labelled_by_keyboard_alone(
    page: Page, address: str, dataset: Dataset
) -> None:
    base = address.split("/open")[0]
    page.goto(f"{base}/d/data/trajectories/b")
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.id") == "content"
    for _ in range(200):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement.textContent") == "Label this verdict":
            break
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.type("It says so itself.")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**#criterion-truth")
    [label] = labels_waiting(dataset)
    assert (label["trajectory_id"], label["label"], label["labeller"]) == ("b", "fail", "ann")
    assert label["note"] == "It says so itself."
    assert "It says so itself." in page.inner_text("#criterion-truth")


def test_every_field_has_a_label_and_every_page_one_heading(page: Page, address: str) -> None:
    base = address.split("/open")[0]
    unnamed = """() => [...document.querySelectorAll('input, select, textarea')]
        .filter(e => e.type != 'hidden' && !e.labels.length).length"""
    for path in ("trajectories", "trajectories/b", "sql", "compare", "rewrites", ""):
        page.goto(f"{base}/d/data/{path}".rstrip("/"))
        assert page.evaluate(unnamed) == 0, path
        assert page.locator("h1").count() == 1, path


def test_a_jump_to_a_message_leaves_what_comes_before_it_in_view(page: Page, address: str) -> None:
    base = address.split("/open")[0]
    page.goto(f"{base}/d/data/trajectories/b#message-5")
    place = """() => document.getElementById('message-5').getBoundingClientRect().top
        / window.innerHeight"""
    page.wait_for_function("() => window.scrollY > 0")
    assert 0.3 < page.evaluate(place) < 1


def test_links_within_a_page_lead_somewhere(page: Page, address: str) -> None:
    base = address.split("/open")[0]
    page.goto(f"{base}/d/data/trajectories/b")
    anchors = page.evaluate(
        "() => [...document.querySelectorAll('a[href^=\"#\"]')].map(a => a.hash)"
    )
    assert anchors
    missing = "(all) => all.filter(h => !document.getElementById(decodeURIComponent(h.slice(1))))"
    assert page.evaluate(missing, anchors) == []
