"""Pages: each answers, shows foreign text as text, and a rejected row says first why."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from records.store.dataset import Dataset
from records.tables.tables import TABLES
from tests.records.rows import row
from tests.synth.browser.shown import (
    BASE,
    client_of,
    form_of,
    hostile_trajectory,
    regrade,
    reject,
)
from tests.synth.publish.judged import curate, decision, told_false
from tests.synth.publish.test_report import HOSTILE
from tests.synth.small_dataset import trajectory, write_dataset

HARMLESS = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "link",
        "body",
        "a",
        "header",
        "div",
        "nav",
        "form",
        "label",
    ),
    *("input", "button", "main", "h1", "h2", "h3", "h4", "p", "span", "bdi", "b", "code", "pre"),
    *("table", "thead", "tr", "th", "td", "svg", "rect", "details", "summary", "section", "aside"),
    *("mark", "blockquote", "br", "ul", "ol", "li", "select", "option", "textarea", "fieldset"),
    *("legend", "del", "ins", "q"),
}


class Elements(HTMLParser):
    """Every element, and every attribute that could act."""

    def __init__(self) -> None:
        super().__init__()
        self.unknown: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in HARMLESS:
            self.unknown.add(tag)
        for name, value in attrs:
            leads = name in ("href", "action", "src")
            if name.startswith("on") or name == "style":
                self.unknown.add(f"{tag} {name}")
            if leads and not re.match(r"/(?!/)|#", value or ""):
                self.unknown.add(f"{tag} {name}={value}")


def acting(html: str) -> set[str]:
    elements = Elements()
    elements.feed(html)
    return elements.unknown


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    folder = tmp_path_factory.mktemp("hostile")
    rows = [(hostile_trajectory("a", HOSTILE), None), (hostile_trajectory("b", HOSTILE), HOSTILE)]
    dataset = write_dataset(folder / "data", rows, domain=HOSTILE, model=HOSTILE, words=HOSTILE)
    reject(dataset, "b", HOSTILE)
    texts = {"source_text": HOSTILE, "text": HOSTILE, "style": HOSTILE, "chunks": []}
    texts |= {"source_name": HOSTILE, "perspective": HOSTILE, "model": HOSTILE}
    numbers = {"source_part": 0, "source_parts": 1, "source_tokens": 1, "text_tokens": 1}
    rewrite = row("rephrasings", rephrasing_id="r", source_id="s", **texts, **numbers)
    tables = {"rephrasings": [rewrite]}
    dataset.commit(run_id="run-2", stage="rephrase", shard=0, tables=tables)
    return client_of(dataset)


PAGES = [
    "/",
    "/d/data",
    "/d/data/trajectories",
    "/d/data/trajectories/a",
    "/d/data/trajectories/b",
    "/d/data/trajectories/b?curation=curation-2",
    "/d/data/trajectories/b?whole=1",
    "/d/data/compare?a=data:run-1&b=data:run-1",
    "/d/data/compare?before=curation-1&after=curation-2",
    "/d/data/environments",
    "/d/data/environments/domain-1",
    "/d/data/tools/find_boats",
    "/d/data/rewrites",
    "/d/data/rewrites/r",
    "/d/data/costs",
    "/d/data/costs?stage=rollouts",
    "/d/data/rows",
    "/d/data/rows/trajectories?trajectory_id=b",
    "/d/data/sql?q=select * from trajectories",
    f"/d/data/sql?q={HOSTILE.replace('%', '').replace('#', '')}",
    f"/d/data/find?id={HOSTILE[:80]}",
    "/d/<script>",
]


@pytest.mark.parametrize("path", PAGES)
def test_foreign_text_is_text_on_every_page(hostile: TestClient, path: str) -> None:
    answer = hostile.get(path.replace("\x1b", "").replace("\x07", ""))
    assert answer.status_code in (200, 404), answer.text[-600:]
    assert acting(answer.text) == set()
    assert "<script" not in answer.text
    for character in ("\x1b", "\u202e", "\x07"):
        assert character not in answer.text
    assert "7 * 7 }}" in answer.text or "49" not in answer.text


def test_every_row_of_every_table_has_an_address(hostile: TestClient, tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "data", [(trajectory("t1"), "failed_state")])
    regrade(dataset, ["t1"])
    client = client_of(dataset)
    found = 0
    for table, spec in TABLES.items():
        for one in dataset.rows(table):
            key = {name: one[name] for name in spec.primary_key}
            answer = client.get(f"/d/data/rows/{table}", params=key)
            assert answer.status_code == 200, (table, key)
            assert f"A row of <code>{table}</code>" in answer.text
            found += 1
        listed = client.get(f"/d/data/rows/{table}")
        assert listed.status_code == 200
    assert found > 10


def test_the_page_of_a_rejected_row_says_first_why(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "data", [(trajectory("t1"), None)])
    regrade(dataset, ["t1"])
    page = client_of(dataset).get("/d/data/trajectories/t1").text
    told = [
        "Rejected: Something that the agent told the user is false",
        "Criterion not passed, by judge",
        "Every statement of the assistant to the user is true",
        "Code looked and could not tell for sure, so the judge was asked and decided it.",
        "Message 5</a>: the judge finds this",
        "<blockquote",
        "The judge says: \u201cNo call wrote to anybody.\u201d",
        "Where:",
        'href="#message-5"><bdi>',
        "Conversation</h2>",
    ]
    places = [page.find(words) for words in told]
    assert -1 not in places
    assert places == sorted(places)


def test_a_quote_is_marked_where_it_stands(tmp_path: Path) -> None:
    rows = [(trajectory("t1"), None)]
    dataset = write_dataset(tmp_path / "data", rows)
    reject(dataset, "t1", "it costs 20 EUR.")
    page = client_of(dataset).get("/d/data/trajectories/t1").text
    assert re.search(r'Done, <mark class="bad"[^>]*>it costs 20 EUR.</mark>', page)
    [where] = set(re.findall(r'href="#(message-\d+)"><bdi>message', page))
    assert f'id="{where}"' in page


def test_an_earlier_decision_is_shown_as_it_was(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "data", [(trajectory("t1"), None)])
    regrade(dataset, ["t1"])
    client = client_of(dataset)
    earlier = client.get("/d/data/trajectories/t1?curation=curation-1").text
    assert "<b>Accepted</b>" in earlier
    assert "<b>Rejected" in client.get("/d/data/trajectories/t1").text
    assert client.get("/d/data/trajectories/t1?curation=nope'").status_code == 404
    compared = client.get("/d/data/compare?before=curation-1&after=curation-2").text
    assert "1 trajectories that both looked at" in compared
    assert "curation=curation-1" in compared


def test_huge_texts_are_cut_until_they_are_asked_for(tmp_path: Path) -> None:
    huge = "word " * 200_000 + "the end"
    dataset = write_dataset(tmp_path / "data", [(hostile_trajectory("t1", huge), None)])
    client = client_of(dataset)
    page = client.get("/d/data/trajectories/t1").text
    assert len(page) < 500_000
    assert "Show all of them" in page
    assert "the end" in client.get("/d/data/trajectories/t1?whole=1").text


def test_an_empty_dataset_has_its_pages(tmp_path: Path) -> None:
    client = client_of(Dataset.create_or_open(tmp_path / "data"))
    parts = ("", "/trajectories", "/compare", "/environments", "/rewrites", "/costs", "/rows")
    for path in ("/", *(f"/d/data{part}" for part in parts)):
        assert client.get(path).status_code == 200, path


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("select count(*) as n from range(1000000000000)", "stopped after"),
        ("select nonsense", "tables:"),
        ("create table x as select 1", "only one reading statement"),
        ("select * from '/etc/passwd'", "tables:"),
    ],
)
def test_a_query_is_bounded_and_a_wrong_one_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str, words: str
) -> None:
    monkeypatch.setattr("synth.browser.opened.SQL_TIMEOUT_S", 0.3)
    client = client_of(write_dataset(tmp_path / "data", [(trajectory("t1"), None)]))
    page = client.get("/d/data/sql", params={"q": query})
    assert page.status_code == 200
    assert words in page.text
    assert query.split()[1] in page.text


def test_answers_of_any_kind_are_shown_and_ids_are_no_numbers(tmp_path: Path) -> None:
    rows = [(trajectory("12e4567890123456"), None)]
    client = client_of(write_dataset(tmp_path / "data", rows))
    query = "select trajectory_id, [date '2026-01-02'], {'a': 1::hugeint} from trajectories"
    page = client.get("/d/data/sql", params={"q": query}).text
    for words in ("12e4567890123456</bdi>", "2026-01-02", "&#34;a&#34;: 1}"):
        assert words in page
    assert "Infinity" not in page
    assert client.get("/d/data/costs?stage=nope").status_code == 404


def test_a_conversation_of_an_episode_has_the_verdicts_and_labels_of_the_episode(
    tmp_path: Path,
) -> None:
    parts = [trajectory(f"t{n}", session=n, episode_id="t0") for n in range(2)]
    dataset = write_dataset(tmp_path / "data", [(one, None) for one in parts])
    more = {"failed_criterion": "truth", "attributed_to": "agent"}
    decisions = [decision(one, "failed_truth", **more) for one in ("t0", "t1")]
    curate(dataset, decisions, told_false("t0"), shard=7)
    client = client_of(dataset)
    page = client.get("/d/data/trajectories/t1").text
    assert "Criterion not passed, by judge" in page
    assert "No call wrote to anybody." in page
    data = {"form": form_of(page), "trajectory_id": "t0", "criterion_id": "truth", "label": "pass"}
    said = data | {"labeller": "ben", "note": "It was told."}
    assert client.post("/d/data/labels", data=said, headers={"origin": BASE}).status_code == 200
    for one in ("t0", "t1"):
        assert "says <bdi>ben" in client.get(f"/d/data/trajectories/{one}").text


def test_a_long_answer_is_cut(tmp_path: Path) -> None:
    client = client_of(write_dataset(tmp_path / "data", [(trajectory("t1"), None)]))
    page = client.get(
        "/d/data/sql", params={"q": "select range as n from range(100000000000)"}
    ).text
    assert "500 rows, the first of more" in page
