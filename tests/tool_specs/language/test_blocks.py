"""`let`, `when` and reference paths, in calls of a small domain."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from records.errors import ConfigError
from tool_specs.coverage.skeleton import semantics_key, skeleton_of
from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import CallResult, DomainEnvironment, policy_violations
from tool_specs.language.schemas import Validator

DATA: dict[str, Any] = {
    "domain": "pharmacy",
    "title": "A pharmacy",
    "category": "healthcare_medical",
    "description": "Prescriptions are filled from stock.",
    "now": "2026-03-02T09:00:00",
    "entities": {
        "maker": {
            "key": "maker_id",
            "fields": {"maker_id": {"type": "string"}, "country": {"type": "string"}},
        },
        "medicine": {
            "key": "medicine_id",
            "fields": {
                "medicine_id": {"type": "string"},
                "title": {"type": "string"},
                "stock": {"type": "integer", "min": 0},
                "maker_id": {"type": "ref", "to": "maker"},
            },
        },
        "script": {
            "key": "script_id",
            "prefix": "SC-",
            "fields": {
                "script_id": {"type": "string"},
                "medicine_id": {"type": "ref", "to": "medicine"},
                "instead_id": {"type": "ref", "to": "medicine", "optional": True},
                "before": {"type": "ref", "to": "script", "optional": True},
                "packs": {"type": "integer"},
                "also": {"type": "list", "of": "ref", "to": "medicine"},
                "lines": {
                    "type": "list",
                    "of": "object",
                    "properties": {
                        "title": {"type": "string"},
                        "packs": {"type": "integer", "min": 1},
                        "note": {"type": "string", "optional": True},
                    },
                    "optional": True,
                },
            },
        },
    },
    "seed": {
        "maker": [{"maker_id": "MK-1", "country": "FR"}, {"maker_id": "MK-2", "country": "IN"}],
        "medicine": [
            {"medicine_id": "ME-1", "title": "Aspirin", "stock": 5, "maker_id": "MK-1"},
            {"medicine_id": "ME-2", "title": "Zinc", "stock": 0, "maker_id": "MK-2"},
        ],
        "script": [
            {"script_id": "SC-1", "medicine_id": "ME-1", "packs": 2, "also": ["ME-2", "ME-1"]},
            {
                "script_id": "SC-2",
                "medicine_id": "ME-2",
                "instead_id": "ME-1",
                "before": "SC-1",
                "packs": 1,
                "also": [],
            },
        ],
    },
}
PARAMS: dict[str, Any] = {
    "script_id": {"type": "string", "ref": "script"},
    "ids": {"type": "array", "items": {"type": "string", "ref": "script"}},
    "packs": {"type": "integer", "optional": True},
    "wanted": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "medicine_id": {"type": "string", "ref": "medicine"},
                "packs": {"type": "integer"},
            },
        },
    },
    "limits": {
        "type": "object",
        "optional": True,
        "properties": {"most": {"type": "integer"}},
    },
}
SCRIPT = {"op": "read", "entity": "script", "key": "args.script_id", "as": "script"}
SCRIPTS = {"op": "read", "entity": "script", "as": "scripts"}


def domain_with(*statements: dict[str, Any], returns: Any = "null", **more: Any) -> Domain:
    used = str(statements) + str(returns)
    params = {
        name: spec
        for name, spec in PARAMS.items()
        if re.search(rf"args\.{name.removesuffix('_id')}(_id)?\b", used)
    }
    tool = {
        "name": "act",
        "description": "Does what the test says.",
        "params": params,
        "semantics": [*statements, {"op": "return", "value": returns}],
    }
    return Domain.of(DATA | {"tools": [tool]} | more, origin="test")


def run(*statements: dict[str, Any], returns: Any = "null", **arguments: Any) -> CallResult:
    environment = DomainEnvironment.of(domain_with(*statements, returns=returns))
    result = environment.call("act", arguments)
    assert environment.state.total == environment.state.total_from_scratch()
    return result


def refused(*statements: dict[str, Any], returns: Any = "null", **more: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        domain_with(*statements, returns=returns, **more)
    return str(caught.value)


def schema(*statements: dict[str, Any], returns: Any) -> Any:
    return domain_with(*statements, returns=returns).programs["act"].output_schema


# reference paths


@pytest.mark.parametrize(
    ("path", "value", "type_"),
    [
        ("script.medicine.title", "Zinc", "string"),
        ("script.medicine.maker.country", "IN", "string"),
        ("script.medicine_id.stock", 0, "integer"),
        ("script.instead.title", "Aspirin", ["string", "null"]),
        ("script.before.packs", 2, ["integer", "null"]),
        ("script.before.medicine.title", "Aspirin", ["string", "null"]),
        ("script.before.instead.maker.country", None, ["string", "null"]),
        ("args.script.packs", 1, ["integer", "null"]),
        ("args.script_id.medicine.stock", 0, ["integer", "null"]),
        ("lookup('script', args.script_id).before.packs", 2, ["integer", "null"]),
    ],
)
def test_a_path_goes_from_row_to_row(path: str, value: Any, type_: Any) -> None:
    assert run(SCRIPT, returns=path, script_id="SC-2").observation == value
    assert schema(SCRIPT, returns=path)["type"] == type_


def test_paths_from_lists_give_lists() -> None:
    found = run(SCRIPTS, returns={"a": "scripts.medicine.title", "b": "first(scripts).also.stock"})
    assert found.observation == {"a": ["Aspirin", "Zinc"], "b": [0, 5]}
    assert run(returns="args.ids.packs", ids=["SC-2", "SC-9"]).observation == [1, None]
    assert schema(returns="args.ids.packs")["items"] == {"type": ["integer", "null"]}


def test_a_field_of_the_name_comes_before_a_reference() -> None:
    entities = DATA["entities"]
    medicine = entities["medicine"]["fields"] | {"maker": {"type": "string", "optional": True}}
    changed = entities | {"medicine": entities["medicine"] | {"fields": medicine}}
    domain = domain_with(SCRIPT, returns="script.medicine.maker", entities=changed)
    call = DomainEnvironment.of(domain).call("act", {"script_id": "SC-1"})
    assert call.observation is None


def test_a_row_that_is_not_there_ends_a_path_from_an_argument_in_null() -> None:
    assert run(returns="args.script.medicine.title", script_id="SC-9").observation is None


def test_a_path_to_a_row_that_the_call_deleted_fails() -> None:
    medicine = {"op": "let", "as": "medicine", "be": "script.medicine"}
    call = run(
        SCRIPT,
        medicine,
        {"op": "delete", "target": "medicine"},
        returns="script.medicine.stock",
        script_id="SC-1",
    )
    assert call.observation["error"]["message"] == "medicine 'ME-1' was deleted by this call"


@pytest.mark.parametrize(
    ("where", "scans"),
    [
        ("script.medicine_id == args.script.medicine_id", ()),
        ("script.medicine.medicine_id == 'ME-1'", ()),
        ("script.medicine_id.medicine_id == 'ME-1'", ()),
        ("script.medicine_id == 'ME-1' and script.medicine.stock > 0", (0,)),
        ("script.medicine.title == 'Aspirin'", (0,)),
    ],
)
def test_indexes_serve_a_where_with_paths(where: str, scans: tuple[int, ...]) -> None:
    read = {"op": "read", "entity": "script", "where": where, "as": "found"}
    domain = domain_with(read, returns="found.script_id")
    assert domain.programs["act"].scans == scans
    arguments = {"script_id": "SC-1"} if "args" in where else {}
    assert DomainEnvironment.of(domain).call("act", arguments).observation == ["SC-1"]


def test_rules_and_invariants_take_paths() -> None:
    rule = {
        "id": "in_stock",
        "text": "Do not fill what is out.",
        "tool": "act",
        "forbids": "args.script.medicine.stock == 0",
    }
    invariant = {
        "id": "known_makers",
        "entity": "script",
        "that": "script.medicine.maker.country != 'XX'",
        "text": "Makers are known.",
    }
    domain = domain_with(SCRIPT, returns="script.packs", policy=[rule], rules=[invariant])
    environment = DomainEnvironment.of(domain)
    assert policy_violations(environment, "act", {"script_id": "SC-2"}) == ["in_stock"]
    assert policy_violations(environment, "act", {"script_id": "SC-1"}) == []


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("script.medicin.title", "and the rows medicine, instead"),
        ("script.medicine.titel", "medicine has no field 'titel'; it has medicine_id, title"),
        ("script.packs.title", "integer has no field 'title'"),
        ("script" + ".before" * 9, "over 8 dots in a row"),
    ],
)
def test_a_wrong_path_says_what_there_is(path: str, words: str) -> None:
    assert words in refused(SCRIPT, returns=path)


@pytest.mark.parametrize(
    ("path", "spelt_out"),
    [
        ("script.medicine.stock", "lookup('medicine', script.medicine_id).stock"),
        ("args.script.packs", "lookup('script', args.script_id).packs"),
        (
            "[{t: s.medicine.title} for s in scripts]",
            "[{t: lookup('medicine', s.medicine_id).title} for s in scripts]",
        ),
    ],
)
def test_a_path_and_its_lookups_are_the_same_tool(path: str, spelt_out: str) -> None:
    one, other = (domain_with(SCRIPT, SCRIPTS, returns=text) for text in (path, spelt_out))
    for key in (semantics_key, skeleton_of):
        assert key(one.file, one.tools[0]) == key(other.file, other.tools[0])
    third = domain_with(SCRIPT, SCRIPTS, returns="script.before.packs")
    assert semantics_key(third.file, third.tools[0]) != semantics_key(one.file, one.tools[0])


# let


def test_let_names_a_value_as_it_was_and_a_row_as_it_is() -> None:
    call = run(
        SCRIPT,
        {"op": "let", "as": "medicine", "be": "script.medicine"},
        {"op": "let", "as": "before", "be": "medicine.stock"},
        {"op": "update", "target": "medicine", "set": {"stock": "before - script.packs"}},
        returns={"before": "before", "after": "medicine.stock", "path": "script.medicine.stock"},
        script_id="SC-1",
    )
    assert call.observation == {"before": 5, "after": 3, "path": 3}
    assert call.diff[0]["after"] == {"stock": 3}


def test_let_inside_a_loop_is_a_list_after_it() -> None:
    call = run(
        {"op": "for_each", "over": "args.ids", "as": "id"},
        {"op": "let", "in": "id", "as": "packs", "be": "id.packs"},
        returns="sum(packs)",
        ids=["SC-1", "SC-2"],
    )
    assert call.observation == 3


def test_a_let_that_nothing_reads_is_refused() -> None:
    words = refused(SCRIPT, {"op": "let", "as": "idle", "be": "script.packs"})
    assert "tools[act].semantics[1].as: nothing reads 'idle'; leave this statement out" in words


def test_what_only_an_unread_let_takes_is_an_idle_parameter() -> None:
    words = refused({"op": "let", "as": "own", "be": "args.packs"})
    assert "params.packs: nothing in the semantics reads it" in words
    assert domain_with({"op": "let", "as": "own", "be": "args.limits"}, returns="own.most")


# when


def filled(packs: int | None) -> CallResult:
    return run(
        SCRIPT,
        {"op": "when", "that": "args.packs != null", "as": "given"},
        {"op": "let", "in": "given", "as": "left", "be": "script.medicine.stock - args.packs"},
        {"op": "when", "in": "given", "that": "left < 0", "as": "short"},
        {"op": "update", "in": "short", "target": "script", "set": {"packs": "0"}},
        {"op": "when", "that": "not given", "as": "asked"},
        {"op": "update", "in": "asked", "target": "script", "set": {"packs": "99"}},
        returns={"given": "given", "left": "left", "short": "short", "packs": "script.packs"},
        script_id="SC-1",
        **({} if packs is None else {"packs": packs}),
    )


def test_when_runs_its_body_or_leaves_null() -> None:
    assert filled(3).observation == {"given": True, "left": 2, "short": False, "packs": 2}
    assert filled(9).observation == {"given": True, "left": -4, "short": True, "packs": 0}
    assert filled(None).observation == {"given": False, "left": None, "short": None, "packs": 99}


def test_a_loop_inside_a_when_and_a_when_inside_a_loop() -> None:
    call = run(
        {"op": "when", "that": "count(args.ids) > 0", "as": "some"},
        {"op": "for_each", "in": "some", "over": "args.ids", "as": "id"},
        {"op": "read", "in": "id", "entity": "script", "key": "id", "as": "script"},
        {"op": "when", "in": "id", "that": "script.packs > 1", "as": "large"},
        {"op": "let", "in": "large", "as": "title", "be": "script.medicine.title"},
        returns={"titles": "title", "large": "large"},
        ids=["SC-1", "SC-2"],
    )
    assert call.observation == {"titles": ["Aspirin", None], "large": [True, False]}


def test_what_a_when_binds_may_be_null_after_it() -> None:
    found = schema(
        SCRIPT,
        {"op": "when", "that": "script.packs > 1", "as": "large"},
        {"op": "let", "in": "large", "as": "title", "be": "script.medicine.title"},
        {"op": "read", "in": "large", "entity": "script", "as": "others"},
        returns={"large": "large", "title": "title", "others": "others.packs"},
    )["properties"]
    assert found["large"] == {"type": "boolean"}
    assert found["title"] == {"type": ["string", "null"]}
    assert found["others"]["type"] == ["array", "null"]


def test_after_a_when_its_rows_may_be_null_and_cannot_be_changed_then() -> None:
    call = run(
        SCRIPT,
        {"op": "when", "that": "script.packs > 9", "as": "many"},
        {"op": "let", "in": "many", "as": "medicine", "be": "script.medicine"},
        {"op": "update", "target": "medicine", "set": {"stock": "0"}},
        script_id="SC-1",
    )
    assert call.error_code == "internal"
    assert "there is no medicine to change: it is null here" in str(call.observation)


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        ([{"op": "when", "that": "true", "as": "x"}], "no statement below carries in: x"),
        (
            [SCRIPT, {"op": "delete", "in": "x", "target": "script"}],
            "no for_each or when named 'x' directly above",
        ),
        (
            [
                {"op": "when", "that": "3", "as": "x"},
                {"op": "read", "in": "x", "entity": "script", "as": "all"},
            ],
            "a condition needs true or false, got integer",
        ),
        (
            [
                {"op": "for_each", "over": "args.ids", "as": "a"},
                {"op": "when", "in": "a", "that": "a != null", "as": "b"},
                {"op": "for_each", "in": "b", "over": "args.ids", "as": "c"},
                {"op": "let", "in": "c", "as": "d", "be": "c"},
            ],
            "for_each cannot stand inside a for_each",
        ),
        ([{"op": "return", "in": "x", "value": "1"}], "no for_each or when named 'x'"),
    ],
)
def test_a_wrong_block_says_so(statements: list[dict[str, Any]], words: str) -> None:
    assert words in refused(*statements)


# records

WANTED = [{"medicine_id": "ME-2", "packs": 3}, {"medicine_id": "ME-1", "packs": 1}]


def made(lines: str, returns: Any = "made.lines") -> tuple[dict[str, Any], ...]:
    values = {"medicine_id": "'ME-1'", "packs": "1", "also": "[]", "lines": lines}
    return ({"op": "create", "entity": "script", "as": "made", "set": values},)


def test_records_are_made_of_an_argument_and_stored() -> None:
    lines = "[{title: upper(w.medicine.title), packs: w.packs} for w in args.wanted if w.packs > 1]"
    call = run(*made(lines), returns="made.lines", wanted=WANTED)
    assert call.observation == [{"title": "ZINC", "packs": 3, "note": None}]
    assert call.diff[0]["after"]["lines"] == call.observation


def test_records_are_returned_with_a_schema() -> None:
    returns = "[{title: s.medicine.title, all: s.packs * 2} for s in scripts]"
    assert run(SCRIPTS, returns=returns).observation[0] == {"title": "Aspirin", "all": 4}
    item = schema(SCRIPTS, returns=returns)["items"]
    assert item["properties"] == {"title": {"type": "string"}, "all": {"type": "integer"}}
    assert item["required"] == ["title", "all"]


def test_a_loop_runs_over_records() -> None:
    call = run(
        {"op": "let", "as": "lines", "be": "[{m: w.medicine, n: w.packs} for w in args.wanted]"},
        {"op": "for_each", "over": "lines", "as": "line"},
        {"op": "require", "in": "line", "that": "line.n <= line.m.stock", "error": "too_few",
         "message": "{line.m.title}: {line.m.stock} are left."},
        wanted=WANTED,
    )  # fmt: skip
    assert call.error_code == "too_few"
    assert call.observation["error"]["message"] == "Zinc: 0 are left."


def test_a_member_that_no_element_reads_is_idle() -> None:
    words = refused(*made("[{title: w.medicine.title, packs: 1} for w in args.wanted]"))
    assert "params.wanted.items.packs: nothing in the semantics reads it" in words


def test_the_list_of_one_member_of_all_elements_reads_the_member() -> None:
    words = refused(*made("{packs: sum(args.wanted.packs)}"))
    assert "params.wanted.items.packs: nothing in the semantics reads it" not in words
    assert "params.wanted.items.medicine_id: nothing in the semantics reads it" in words


def test_hints_tell_what_the_members_of_elements_are() -> None:
    read = {"op": "read", "entity": "medicine", "as": "found",
            "where": "count([w for w in args.wanted if w.packs > medicine.stock]) > 0"}  # fmt: skip
    hints = domain_with(read, returns="[w.medicine_id for w in args.wanted]").programs["act"].hints
    hint = (("wanted", "items", "packs"), "medicine", "stock", "<")
    assert [tuple(found) for found in hints.fields] == [hint]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("[{titel: 'a', packs: 1}]", "has no member 'titel'; members: title, packs, note"),
        ("[{title: 'a'} for w in args.wanted]", "needs the member 'packs' as well"),
        ("[{title: 'a', packs: 'b'}]", "member 'packs' needs integer"),
        ("{title: 'a', packs: 1}", "needs list of object, got object"),
    ],
)
def test_a_record_that_does_not_fit_its_field_says_so(lines: str, words: str) -> None:
    assert words in refused(*made(lines))


# any program at all

NAMES = ("a", "b", "c")
EXPRESSIONS = (
    *("script", "script.medicine", "script.before", "script.before.medicine.stock", "scripts"),
    *("args.script.packs", "args.packs", "args.ids", "args.ids.medicine.stock", "args.limits.most"),
    *("a", "b", "c", "a.packs", "b.stock", "count(a)", "[x.packs for x in scripts if x.packs > 1]"),
    *("{m: script.medicine, n: a}", "[{t: s.medicine.title, o: b} for s in scripts]", "exists(a)"),
    *("a == b", "script.packs > 1", "args.packs != null", "join(scripts.medicine.title, ', ')"),
    *("lower(a)", "part(script.medicine.title, 'i', args.packs)", "not b", "coalesce(a, 1) + 1"),
)
expressions = st.sampled_from(EXPRESSIONS)
names = st.sampled_from(NAMES)
targets = st.sampled_from(("script", "script", *NAMES))
plain = st.one_of(
    st.builds(lambda n, e: {"op": "let", "as": n, "be": e}, names, expressions),
    st.builds(
        lambda t, e: {"op": "update", "target": t, "set": {"packs": e}}, targets, expressions
    ),
    st.builds(lambda t: {"op": "delete", "target": t}, targets),
    st.builds(
        lambda n, e: {"op": "read", "entity": "script", "as": n, "where": f"script.packs != ({e})"},
        names,
        expressions,
    ),
)
CONDITIONS = (
    "script.packs > 1",
    "args.packs != null",
    "exists(a)",
    "args.script.medicine.stock > 0",
)
LISTS = ("scripts", "args.ids", "scripts.medicine", "script.also", "[x.before for x in scripts]")
blocks = st.sampled_from(("d", "e", "f"))
heads = st.one_of(
    st.builds(lambda n, e: {"op": "when", "as": n, "that": e}, blocks, st.sampled_from(CONDITIONS)),
    st.builds(lambda n, e: {"op": "for_each", "as": n, "over": e}, blocks, st.sampled_from(LISTS)),
)
parts = st.one_of(
    plain.map(lambda statement: [statement]),
    st.builds(
        lambda head, body: [head, *(s | {"in": head["as"]} for s in body)],
        heads,
        st.lists(plain, min_size=1, max_size=1),
    ),
)
MET = {"succeeds": 0, "fails": 0, "blocks": 0}


def program(parts: list[list[dict[str, Any]]], answer: str) -> Domain:
    """Of the parts that can follow those before them."""
    kept: list[dict[str, Any]] = []
    given_ids = "[args.ids, args.packs, args.limits.most, args.script_id]"
    domain = domain_with(SCRIPT, SCRIPTS, returns=given_ids)
    for part, value in [*((part, None) for part in parts), ([], answer)]:
        tried = [*kept, *part]
        bound = [s["as"] for s in tried if s["op"] in ("let", "when", "read")]
        returns = {"ids": given_ids} | {name: name for name in bound}
        returns |= {} if value is None else {"value": value}
        try:
            domain, kept = domain_with(SCRIPT, SCRIPTS, *tried, returns=returns), tried
        except ConfigError:
            continue
    return domain


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.lists(parts, min_size=3, max_size=8),
    expressions,
    st.sampled_from(("SC-1", "SC-2", "SC-9")),
    st.none() | st.integers(-1, 3),
)
def test_no_call_of_any_program_raises(
    parts: list[list[dict[str, Any]]], answer: str, key: str, packs: int | None
) -> None:
    domain = program(parts, answer)
    arguments: dict[str, Any] = {"script_id": key, "ids": ["SC-2", "SC-8", "SC-1"]}
    arguments |= {} if packs is None else {"packs": packs, "limits": {"most": packs}}
    environment = DomainEnvironment.of(domain)
    for _ in range(2):
        result = environment.call("act", arguments)
        assert environment.state.total == environment.state.total_from_scratch()
        if not result.is_error:
            output = domain.programs["act"].output_schema
            assert Validator(output).problems(result.observation) == []
        MET["fails" if result.is_error else "succeeds"] += 1
    ops = {statement.op for statement in domain.tools[0].semantics}
    MET["blocks"] += bool(ops & {"when", "for_each"})


def test_programs_of_each_kind_were_met() -> None:
    """Else the test above would show nothing."""
    assert min(MET.values()) >= 10, MET
