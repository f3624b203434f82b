"""Rows to Arrow and back, through Parquet: any JSON value comes back as it went."""

import io
from typing import Any

import duckdb
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from records.tables.columns import decode, encode
from records.tables.tables import TABLES
from tests.examples import examples
from tests.records.rows import row, trajectories

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
rows = st.builds(
    lambda messages, error, tools, turns, reward, executed_by: trajectories(
        "a",
        messages=messages,
        error=error,
        tools=tools,
        num_turns=turns,
        objective_reward=reward,
        executed_by=executed_by,
    )[0],
    json_values,
    st.none() | st.text(),
    json_values,
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.none() | st.floats(allow_nan=False),
    st.none() | st.lists(st.text(), max_size=3),
)


@given(st.lists(rows, max_size=3))
@settings(deadline=None)
def test_round_trip_through_parquet(given_rows: list[dict[str, Any]]) -> None:
    buffer = io.BytesIO()
    pq.write_table(encode("trajectories", given_rows, run_id="r"), buffer)
    stored = pq.read_table(buffer)
    back = decode(TABLES["trajectories"], stored.drop_columns(["run_id", "schema_version"]))
    assert back == given_rows
    assert stored["run_id"].to_pylist() == ["r"] * len(given_rows)


@given(json_values)
@settings(deadline=None, max_examples=examples(30))
def test_equal_values_have_equal_text(value: Any) -> None:
    def text(messages: Any) -> str:
        return encode("trajectories", trajectories("a", messages=messages), run_id="r")["messages"][
            0
        ].as_py()

    turned = dict(reversed(value.items())) if isinstance(value, dict) else value
    assert text(turned) == text(value)


def test_none_is_null_and_not_the_json_text() -> None:
    table = encode("trajectories", trajectories("a"), run_id="r")
    with duckdb.connect() as connection:
        connection.register("stored", table)
        query = "SELECT messages IS NULL, typeof(messages) FROM stored"
        assert connection.execute(query).fetchall() == [(True, "JSON")]


def test_schemas_of_tools_keep_the_order_of_their_keys() -> None:
    schema = {"type": "object", "properties": {"to": {}, "from": {}, "amount": {}}}
    stored = encode("tools", [row("tools", tool_id="a", input_schema=schema)], run_id="r")
    (back,) = decode(TABLES["tools"], stored.select(["input_schema"]))
    assert list(back["input_schema"]["properties"]) == ["to", "from", "amount"]
    shown = encode("trajectories", trajectories("a", tools=[schema]), run_id="r")
    (back,) = decode(TABLES["trajectories"], shown.select(["tools"]))
    assert list(back["tools"][0]["properties"]) == ["to", "from", "amount"]
