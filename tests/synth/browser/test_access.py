"""Who may ask: this machine's browser with the key, from pages of this server, and nobody else."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from synth.browser.app import BrowserApp
from tests.synth.browser.shown import BASE, PORT, client_of, form_of
from tests.synth.small_dataset import trajectory, write_dataset


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> BrowserApp:
    folder = tmp_path_factory.mktemp("d")
    dataset = write_dataset(folder / "data", [(trajectory("t1"), "failed_state")])
    return BrowserApp([dataset], port=PORT, labeller="ann")


@pytest.fixture
def stranger(app: BrowserApp) -> TestClient:
    return TestClient(app.asgi, base_url=BASE, raise_server_exceptions=False)


@pytest.fixture
def friend(app: BrowserApp) -> TestClient:
    client = TestClient(app.asgi, base_url=BASE, raise_server_exceptions=False)
    client.get(app.address)
    return client


@pytest.mark.parametrize("path", ["/", "/d/data", "/style.css", "/nope", "/d/data/sql?q=select 1"])
def test_without_the_key_nothing_is_told(stranger: TestClient, path: str) -> None:
    answer = stranger.get(path)
    assert answer.status_code == 403
    assert "data" not in answer.text


def test_the_address_gives_the_key_once_and_does_not_keep_it(
    app: BrowserApp, stranger: TestClient
) -> None:
    answer = stranger.get(app.address, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert all(word in cookie for word in ("HttpOnly", "SameSite=Strict", f"-{PORT}="))
    token = app.address.split("token=")[1]
    page = stranger.get("/d/data/trajectories/t1")
    assert page.status_code == 200
    assert token not in page.text
    assert form_of(page.text) != token


@pytest.mark.parametrize("token", ["", "x", "\u00e9", "x" * 43])
def test_another_key_opens_nothing(stranger: TestClient, token: str) -> None:
    answer = stranger.get("/open", params={"token": token}, follow_redirects=False)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "other", ['a={"b":1}', "x=a b", "noname", "expires=1", "a:b=1", "q=[1, 2]", 'u="2|1:0"', "="]
)
def test_cookies_of_other_servers_on_this_machine_do_not_shut_the_door(
    app: BrowserApp, stranger: TestClient, other: str
) -> None:
    answer = stranger.get(app.address, follow_redirects=False)
    ours = answer.headers["set-cookie"].partition(";")[0]
    stranger.cookies.clear()
    for cookies in (f"{other}; {ours}", f"{ours}; {other}"):
        assert stranger.get("/", headers={"cookie": cookies}).status_code == 200
    assert stranger.get("/", headers={"cookie": other}).status_code == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8420", "127.0.0.1", "127.0.0.1:80"])
def test_names_that_are_made_to_lead_here_are_not_answered(friend: TestClient, host: str) -> None:
    assert friend.get("/", headers={"host": host}).status_code == 421
    assert friend.get("/", headers={"host": f"localhost:{PORT}"}).status_code in (200, 403)


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
def test_requests_from_other_sites_are_refused(friend: TestClient, site: str) -> None:
    assert friend.get("/", headers={"sec-fetch-site": site}).status_code == 403
    for own in ("none", "same-origin"):
        assert friend.get("/", headers={"sec-fetch-site": own}).status_code == 200


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (None, 403),
        ("null", 403),
        ("http://evil.example", 403),
        ("http://127.0.0.1:9999", 403),
        ("https://127.0.0.1:8420", 403),
        (BASE, 303),
    ],
)
def test_what_changes_anything_comes_from_a_page_of_ours(
    friend: TestClient, origin: str | None, status: int
) -> None:
    form = form_of(friend.get("/d/data/trajectories/t1").text)
    data = {"form": form, "trajectory_id": "t1", "criterion_id": "goal", "label": "fail"}
    headers = {"origin": origin} if origin else {}
    answer = friend.post(
        "/d/data/labels", data=data | {"labeller": "ann"}, headers=headers, follow_redirects=False
    )
    assert answer.status_code == status


def test_a_form_needs_the_token_of_its_page(friend: TestClient) -> None:
    data = {"trajectory_id": "t1", "criterion_id": "goal", "label": "fail", "labeller": "ann"}
    for form in ({}, {"form": "x"}, {"form": "\u00e9"}):
        answer = friend.post("/d/data/labels", data=data | form, headers={"origin": BASE})
        assert answer.status_code == 400
        assert "earlier start" in answer.text


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_refused(friend: TestClient, method: str) -> None:
    assert friend.request(method, "/").status_code == 405


@pytest.mark.parametrize("path", ["/", "/nope", "/style.css", "/d/data/sql?q=nonsense"])
def test_every_answer_is_sealed(friend: TestClient, path: str) -> None:
    headers = friend.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src" not in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize(
    "path",
    [
        "/d/..%2f..%2fetc",
        "/d/data/../../../etc/passwd",
        "/d/%2e%2e/data",
        "/d/data/rows/..%2f..%2fdataset.json",
        "/d/data/trajectories/..%2f..%2f..%2fetc%2fpasswd",
        "/style.css/../../app.py",
        "/d/data/sql?q=select * from read_text('/etc/passwd')",
        "/d/data/trajectories?sql=select content as trajectory_id from read_text('/etc/passwd')",
        "/d/data/sql?q=copy (select 1) to '/tmp/x'",
    ],
)
def test_no_path_leads_out_of_the_datasets(friend: TestClient, path: str) -> None:
    answer = friend.get(path)
    assert "root:" not in answer.text
    assert answer.status_code == 404 or "<pre>" in answer.text


def test_a_dataset_is_served_under_a_name_that_an_address_can_hold(tmp_path: Path) -> None:
    one = write_dataset(tmp_path / "a b" / "<x>", [(trajectory("t"), None)])
    two = write_dataset(tmp_path / "c" / "-x-", [(trajectory("t"), None)])
    text = client_of(one, two).get("/").text
    assert 'href="/d/x"' in text
    assert 'href="/d/x-2"' in text
    assert "<x>" not in text
