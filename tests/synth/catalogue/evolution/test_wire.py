"""The form in which models write tools: nothing is lost on the way, errors read as sentences."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.catalogue.proposals.schemas import DOMAIN, TOOLS
from synth.catalogue.proposals.wire import WireError, spec_of, wire_of
from tests.examples import examples
from tool_specs.domains.domain import load_domains
from tool_specs.language.domain_file import ParamSpec, ToolSpec
from tool_specs.language.schemas import Validator

NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=20)
NUMBERS = st.integers(-100, 100) | st.floats(-100, 100)
EXPRESSIONS = TEXTS


def some(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with any of the members."""
    return st.fixed_dictionaries({}, optional=members)


@st.composite
def scalars(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["string", "integer", "number", "boolean", "date", "enum"]))
    param = {"type": kind} | draw(some(description=TEXTS, optional=st.booleans()))
    if kind in ("integer", "number"):
        param |= draw(some(min=NUMBERS, max=NUMBERS, unit=TEXTS))
    if kind == "string":
        param |= draw(some(min=st.integers(0, 9), ref=NAMES))
    if kind == "enum":
        param["values"] = draw(st.lists(TEXTS, min_size=1, max_size=3, unique=True))
    return param


@st.composite
def params(draw: st.DrawFn) -> dict[str, Any]:
    members = st.dictionaries(NAMES, scalars(), min_size=1, max_size=3)
    own = draw(some(description=TEXTS, optional=st.booleans()))
    shape = draw(st.sampled_from(["scalar", "object", "objects", "array"]))
    if shape == "scalar":
        param = draw(scalars())
        if param.get("optional"):
            param |= draw(some(default=st.booleans() | NUMBERS | TEXTS))
        return param
    if shape == "object":
        return own | {"type": "object", "properties": draw(members)}
    items = draw(
        st.builds(lambda p: {"type": "object", "properties": p}, members)
        if shape == "objects"
        else st.sampled_from(
            [{"type": "date"}, {"type": "string", "ref": "shop"}, {"type": "enum", "values": ["a"]}]
        )
    )
    return own | {"type": "array", "items": items} | draw(some(min=st.integers(0, 3)))


VALUES = st.recursive(
    EXPRESSIONS, lambda inner: st.dictionaries(NAMES, inner, min_size=1, max_size=2), max_leaves=4
)
SETS = st.dictionaries(NAMES, EXPRESSIONS, min_size=1, max_size=3)
STATEMENTS = st.one_of(
    st.builds(
        lambda must, may: {"op": "read"} | must | may,
        st.fixed_dictionaries({"entity": NAMES, "as": NAMES}),
        some(
            key=EXPRESSIONS,
            where=EXPRESSIONS,
            order_by=st.lists(NAMES, min_size=1, max_size=2).map(tuple),
            limit=EXPRESSIONS,
            cursor=EXPRESSIONS,
            error=NAMES,
            message=TEXTS,
        ),
    ),
    st.fixed_dictionaries(
        {"op": st.just("require"), "that": EXPRESSIONS, "error": NAMES, "message": TEXTS}
    ),
    st.fixed_dictionaries(
        {"op": st.just("create"), "entity": NAMES, "set": SETS | st.just({})},
        optional={"as": NAMES, "in": NAMES},
    ),
    st.fixed_dictionaries({"op": st.just("update"), "target": NAMES, "set": SETS}),
    st.fixed_dictionaries({"op": st.just("delete"), "target": NAMES}),
    st.fixed_dictionaries(
        {"op": st.sampled_from(["link", "unlink"]), "target": NAMES, "field": NAMES, "to": TEXTS}
    ),
    st.fixed_dictionaries({"op": st.just("for_each"), "over": EXPRESSIONS, "as": NAMES}),
    st.fixed_dictionaries({"op": st.just("let"), "as": NAMES, "be": EXPRESSIONS}),
    st.fixed_dictionaries({"op": st.just("when"), "as": NAMES, "that": EXPRESSIONS}),
    st.fixed_dictionaries({"op": st.just("return"), "value": VALUES | st.just({})}),
)
TOOL_SPECS = st.builds(
    lambda **data: ToolSpec.model_validate(data),
    name=NAMES,
    description=st.text("ab ", min_size=10, max_size=20),
    params=st.dictionaries(NAMES, params(), max_size=3),
    semantics=st.lists(STATEMENTS, min_size=1, max_size=4),
)


@pytest.mark.slow
@given(TOOL_SPECS)
@settings(max_examples=examples(150), deadline=None)
def test_nothing_is_lost_from_spec_to_wire_and_back(spec: ToolSpec) -> None:
    wire = json.loads(json.dumps(wire_of(spec, parent="other")))
    back = spec_of(wire)
    assert back.model_dump() == spec.model_dump()
    assert wire_of(back, parent="other") == wire


def test_handwritten_tools_have_a_wire_form_that_fits_the_schema() -> None:
    check, left_out = Validator(TOOLS), []
    for domain in load_domains():
        for spec in domain.tools:
            try:
                wire = wire_of(spec)
            except WireError as error:
                left_out.append((spec.name, str(error)))
                continue
            assert check.problems({"tools": [wire]}) == []
            assert spec_of(wire).model_dump() == spec.model_dump()
    assert len(left_out) <= 5, left_out


@pytest.mark.parametrize("schema", [TOOLS, DOMAIN], ids=["tools", "domain"])
def test_schemas_are_at_most_four_objects_deep_and_never_recurse(schema: dict[str, Any]) -> None:
    def depth(node: Any) -> int:
        if isinstance(node, list):
            return max(map(depth, node), default=0)
        if not isinstance(node, dict):
            return 0
        assert "$ref" not in node
        inside = max(map(depth, node.values()), default=0)
        return inside + (node.get("type") == "object")

    assert depth(schema) <= 4


def tool(**members: Any) -> dict[str, Any]:
    empty = {"name": "look_up", "description": "Look it up now.", "parent": "", "params": []}
    return (
        empty | {"semantics": [{"op": "return", "value": [{"name": "a", "value": "1"}]}]} | members
    )


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (tool(name="Look Up"), "name: String should match pattern"),
        (tool(params=[{"name": "a", "type": "enum"}]), "values belong to type enum"),
        (tool(params=[{"name": "a", "type": "array"}]), "items belong to type array"),
        (tool(params=[{"name": "a", "type": "date"}] * 2), "'a' stands twice"),
        (tool(semantics=[{"op": "update", "target": "a"}]), "set: Field required"),
        (tool(semantics=[{"op": "delete", "target": "a", "key": "b"}]), "Extra inputs"),
        (
            tool(
                semantics=[
                    {
                        "op": "return",
                        "value": [{"name": n, "value": "1"} for n in ("a.b", "a")],
                    }
                ]
            ),
            "a value and an object at once",
        ),
    ],
)
def test_what_is_out_of_order_is_said_in_words(broken: dict[str, Any], words: str) -> None:
    with pytest.raises(WireError) as caught:
        spec_of(broken)
    assert words in str(caught.value)


def test_empty_members_of_a_statement_count_as_left_out() -> None:
    full = {"op": "read", "entity": "shop", "as": "shops", "key": "", "where": "", "order_by": []}
    bare = {"op": "read", "entity": "shop", "as": "shops"}
    done = {"op": "return", "value": [{"name": "", "value": "shops"}]}
    assert spec_of(tool(semantics=[full, done])) == spec_of(tool(semantics=[bare, done]))


def test_a_spec_that_nests_deeper_is_refused() -> None:
    inner = ParamSpec(type="array", items=ParamSpec(type="string"))
    deep = ParamSpec(type="object", properties={"list": inner})
    spec = ToolSpec.model_validate(
        {
            "name": "deep",
            "description": "Takes a list in an object.",
            "params": {"a": deep},
            "semantics": [{"op": "return", "value": "1"}],
        }
    )
    with pytest.raises(WireError, match=r"params\.a\.list"):
        wire_of(spec)
