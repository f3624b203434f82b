"""A small dataset behind the browser's guard, and a client that has the key."""

from collections.abc import Sequence

from starlette.testclient import TestClient

from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.browser.app import BrowserApp
from tests.synth.publish.judged import curate, decision, told_false, verdict
from tests.synth.small_dataset import conversation, trajectory

PORT = 8420
BASE = f"http://127.0.0.1:{PORT}"


def client_of(*datasets: Dataset) -> TestClient:
    """With the cookie that the printed address gives."""
    app = BrowserApp(datasets, port=PORT, labeller="ann")
    client = TestClient(app.asgi, base_url=BASE, raise_server_exceptions=False)
    assert client.get(app.address).status_code == 200
    return client


def form_of(page: str) -> str:
    """The token that the forms of a page send back."""
    return page.split('name="form" value="')[1].split('"')[0]


def hostile_trajectory(trajectory_id: str, text: str) -> Row:
    messages = conversation(text)
    messages[0]["content"] = text
    messages[2]["reasoning_content"] = text
    messages[2]["tool_calls"][0]["function"] = {"name": text, "arguments": text}
    messages[3]["content"] = text
    messages[-1]["content"] = text
    return trajectory(trajectory_id, messages, variant=text, termination_reason=text, outcome=text)


def reject(dataset: Dataset, trajectory_id: str, text: str) -> None:
    """By the judge, in the words of `text`."""
    said = {"id": "s1", "message": 7, "says": text, "finding": "not_shown"}
    said |= {"evidence": text, "quote": text, "supported": True}
    words = {"evidence": text, "quote": text, "details": [said]}
    failed = verdict(trajectory_id, "truth", "judge", False, **words)
    more = {"failed_criterion": "truth", "attributed_to": "agent"}
    curate(dataset, [decision(trajectory_id, text, **more)], [failed])


def regrade(dataset: Dataset, trajectory_ids: Sequence[str]) -> None:
    """A later grading finds a statement of each false."""
    verdicts = [row for one in trajectory_ids for row in told_false(one)]
    more = {"failed_criterion": "truth", "attributed_to": "agent"}
    decisions = [decision(one, "failed_truth", **more) for one in trajectory_ids]
    curate(dataset, decisions, verdicts, shard=7)
