"""Drawn arguments: valid by the schema, seeded, and meaning something in the environment."""

import jsonschema
import pytest

from records.seeds import rng_of
from tool_specs.domains.domain import Domain, load_domains
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.validation.drawing import draw_arguments, draw_success, examples_in


def tool_names(domain: Domain) -> list[str]:
    return [tool.name for tool in domain.tools]


def test_drawn_arguments_satisfy_the_schema_and_name_rows_that_exist(
    environment: DomainEnvironment,
) -> None:
    for name in tool_names(environment.domain):
        spec = environment.domain.programs[name].spec
        for i in range(50):
            arguments = draw_arguments(environment, name, rng_of("draw", name, i))
            assert arguments is not None
            jsonschema.validate(arguments, spec.input_schema())
            for param, value in arguments.items():
                if ref := spec.params[param].ref:
                    assert environment.get(ref, value) is not None


def test_the_seed_decides_the_draw(environment: DomainEnvironment) -> None:
    for name in tool_names(environment.domain):
        first = [draw_arguments(environment, name, rng_of("a", name, i)) for i in range(5)]
        again = [
            draw_arguments(environment.snapshot(), name, rng_of("a", name, i)) for i in range(5)
        ]
        assert first == again


def test_text_that_a_tool_looks_up_is_text_that_a_row_has(environment: DomainEnvironment) -> None:
    names = " ".join(row["name"] for row in environment.rows("customer"))
    for i in range(20):
        arguments = draw_arguments(environment, "get_customer", rng_of("c", "name", i))
        assert arguments is not None
        assert arguments["name"] in names


def test_a_success_is_found_for_every_tool_and_leaves_the_world_alone(
    environment: DomainEnvironment,
) -> None:
    before = environment.state_hash
    for name in tool_names(environment.domain):
        drawn = draw_success(environment, name, rng_of("success", name))
        assert drawn is not None, name
        assert not drawn.result.is_error
        assert drawn.environment.state_hash == drawn.result.hash_after
        assert environment.state_hash == before


def test_nothing_is_drawn_where_there_is_nothing_to_name(bikes: Domain) -> None:
    empty = {"rental": {"RE-1001": None, "RE-1002": None}}
    environment = DomainEnvironment.of(bikes, empty)
    assert draw_arguments(environment, "return_bike", rng_of("x", "y")) is None
    assert draw_success(environment, "return_bike", rng_of("x", "y")) is None


@pytest.mark.parametrize("tool", ["find_bikes", "start_rental"])
def test_a_cursor_is_never_made_up(environment: DomainEnvironment, tool: str) -> None:
    drawn = [draw_arguments(environment, tool, rng_of("k", tool, i)) or {} for i in range(40)]
    assert not any("cursor" in arguments for arguments in drawn)


def test_quoted_examples_are_taken_whole_and_others_at_commas() -> None:
    quoted = examples_in("Street and city, such as 'Mill Lane 1, Ghent' or 'Quay 2'.")
    assert quoted == (["Mill Lane 1, Ghent", "Quay 2"], True)
    assert examples_in("A colour, such as red, blue or green.") == (["red", "blue", "green"], False)
    assert examples_in("Email, such as ann@mail.example. One only.").texts == ["ann@mail.example"]
    assert examples_in("Anything at all.") == ([], False)


def test_new_text_is_not_some_other_rows() -> None:
    [domain] = load_domains(["ticket_board"])
    taken = {issue["summary"] for issue in domain.seed["issue"]}
    for index in range(20):
        arguments = draw_arguments(
            DomainEnvironment.of(domain), "create_issue", rng_of("text", "test", index)
        )
        assert arguments is not None
        assert arguments["summary"] not in taken
