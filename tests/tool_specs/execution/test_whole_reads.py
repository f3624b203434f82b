"""A read without a limit is of all rows, or the call says that they are too many."""

import pytest

from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import CallResult, DomainEnvironment
from tool_specs.execution.statements import MAX_LISTED, MAX_ROWS, PAGE


def domain_with(num_rows: int, read: dict, answer: dict) -> Domain:
    return Domain.of(
        {
            "domain": "shelves",
            "title": "Shelves",
            "category": "software_apps",
            "description": "Books on shelves.",
            "now": "2026-03-02T09:00:00",
            "entities": {
                "book": {
                    "key": "book_id",
                    "fields": {"book_id": {"type": "string"}, "pages": {"type": "integer"}},
                }
            },
            "seed": {"book": [[f"BO-{n}", 1] for n in range(num_rows)]},
            "tools": [
                {
                    "name": "look",
                    "description": "Look at the books. Returns what is asked for.",
                    "params": {"most": {"type": "integer", "optional": True}},
                    "semantics": [
                        {"op": "read", "entity": "book", "as": "books", **read},
                        {"op": "return", "value": {"most": "args.most", **answer}},
                    ],
                }
            ],
        },
        origin="file",
    )


def looked(num_rows: int, read: dict, answer: dict, **arguments: int) -> CallResult:
    return DomainEnvironment.of(domain_with(num_rows, read, answer)).call("look", arguments)


@pytest.mark.parametrize("read", [{}, {"limit": "args.most"}])
def test_a_total_is_of_all_rows(read: dict) -> None:
    result = looked(3 * PAGE, read, {"total": "sum(books.pages)"})
    assert result.observation["total"] == 3 * PAGE


def test_a_total_of_too_many_rows_is_refused_and_not_wrong() -> None:
    answer = {"total": "sum(books.pages)"}
    assert looked(MAX_ROWS, {}, answer).observation["total"] == MAX_ROWS
    assert looked(MAX_ROWS + 1, {}, answer).error_code == "too_many"


def test_a_list_that_nobody_could_read_is_refused() -> None:
    answer = {"found": {"books": "books.book_id"}}
    assert len(looked(MAX_LISTED, {}, answer).observation["found"]["books"]) == MAX_LISTED
    result = looked(MAX_LISTED + 1, {}, answer)
    assert result.error_code == "too_many"
    assert f"books has {MAX_LISTED + 1} entries" in result.observation["error"]["message"]


def test_pages_are_cut_and_say_so() -> None:
    answer = {"books": "books.book_id", "next": "books_next"}
    result = looked(3 * PAGE, {}, answer).observation
    assert (len(result["books"]), result["next"]) == (PAGE, str(PAGE))
    cut = looked(3 * PAGE, {"limit": "args.most"}, {"books": "books.book_id"}, most=7)
    assert len(cut.observation["books"]) == 7
