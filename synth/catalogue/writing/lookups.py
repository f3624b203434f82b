"""Look-ups that a domain lacks: for rows that people know by words and that tools take by their id.

Who wants a recital moved knows its title. Where no read of the domain leads from the title to the
id, a task has to dictate the id, and nothing is left to find out. For each such kind of row one
read is written: it takes what people know the row by, and shows a few fields more, first of all
those on which a policy rule hangs and that no other read shows.
"""

from collections.abc import Collection, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from records.seeds import rng_of
from synth.tasks.goals.domain_tools import tools_of
from synth.tasks.goals.knowledge import singles_out
from synth.tasks.goals.lookup import Views
from synth.tasks.goals.rules_seen import hidden_fields
from tool_specs.domains.domain import Domain, compile_tools
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.execution.programs import Entities, Problems
from tool_specs.language.domain_file import DomainFile, EntitySpec, FieldSpec, ToolSpec
from tool_specs.language.statements import Read
from tool_specs.validation.validate import validate_tools

ENOUGH = 0.75
"""Share of the rows of a kind that reads must lead to; with less the kind lacks a look-up."""

SHOWN = 4
"""Fields that an answer shows of a row beside those that people know it by, at most."""

BY_ID = 0.35
"""How often a row that is known by another one is looked up by that one's id, which has to be
looked up first, and not by its name."""

_NAMES = (
    "find_{many}", "search_{many}", "look_up_{one}", "find_{one}", "get_{many}_by_{by}",
    "{one}_lookup", "show_{many}_by_{by}", "query_{many}",
)  # fmt: skip
_BY_TEXT = (
    "Find the {many} whose {by} holds the words given.",
    "Look up {a_one} of which only the {by}, or part of it, is known.",
    "Search the {many} by {by}; a part of it is enough.",
    "List the {many} that go by this {by}.",
    "Show which {many} match {a_by} or a part of one.",
    "Tell what is on record of the {many} with such a {by}.",
)
_BY_ROW = (
    "List the {many} of one {by}.",
    "Find what {many} there are for {a_by}.",
    "Look up the {many} that name a certain {by}.",
    "Show all {many} on record for the {by} given.",
)
_BY_VALUE = ("Find the {many} with this {by}.", "List the {many} by their {by}.")
_LOOSE = frozenset({"at", "on", "by", "of", "for", "in", "to", "from", "since", "until"})
"""Words with which the name of a field ends that is no noun."""


def lacking(domain: Domain) -> list[str]:
    """The kinds of rows that a tool takes by id and that no read leads to from what people know of
    them, or that have a field on which a rule hangs and that no read shows; in the order of the
    file. Judged on the rows of the seed."""
    tools = tools_of(domain)
    environment = DomainEnvironment.of(domain, {})
    lookups = Views(domain, tools.values()).of(environment)
    taken = {
        entity
        for tool in tools.values()
        for param in tool.spec.params.values()
        for entity in (param.ref, param.items.ref if param.items else None)
        if entity
    }
    found: list[str] = []
    hidden = hidden_fields(domain)
    for name, spec in domain.entities.items():
        if not spec.natural or not (name in taken or hidden & set(spec.fields)):
            continue
        if hidden & set(spec.fields):
            found.append(name)
            continue
        keys = [row[spec.key] for row in environment.state.tables[name].matching({})]
        known = [key for key in keys if singles_out(environment, domain, name, key)]
        led = sum(lookups.find((name, key)) is not None for key in known)
        if known and led < ENOUGH * len(known):
            found.append(name)
    return found


def written_lookups(domain: Domain) -> list[ToolSpec]:
    """A read for each kind of rows that lacks one, where it then leads to them and is proved. The
    same domain gets the same tools."""
    written: list[ToolSpec] = []
    hidden = hidden_fields(domain)
    for entity in lacking(domain):
        tool = lookup_of(domain.file, entity, list(domain.programs), hidden)
        proved = _proved(domain, tool) if tool else None
        if proved is None:
            continue
        (program,) = compile_tools([proved], Entities.of(domain.file), Problems()).values()
        richer = domain.with_tools([*domain.programs.values(), program])
        if entity not in lacking(richer):
            domain = richer
            written.append(proved)
    return written


def _proved(domain: Domain, tool: ToolSpec) -> ToolSpec | None:
    """The tool, or the same in no order where the seed has no rows whose order counts; None where
    neither is proved."""
    reads = [
        step.model_copy(update={"order_by": ()}) if isinstance(step, Read) else step
        for step in tool.semantics
    ]
    for one in (tool, tool.model_copy(update={"semantics": reads})):
        if validate_tools(domain, [one])[one.name].reason is None:
            return one
    return None


class _Wanted(NamedTuple):
    """A parameter, and the condition that a row meets."""

    name: str
    spec: dict[str, Any]
    condition: str
    words: str
    """What people would call it."""

    of_row: bool = False
    """Whether it names the row that is referred to."""


def lookup_of(
    file: DomainFile, entity: str, taken: Sequence[str], hidden: Collection[str] = ()
) -> ToolSpec | None:
    """The read for rows of `entity`, with those of their fields that are `hidden` otherwise; None
    where people know them by nothing that can be given."""
    rng = rng_of(f"{file.domain}/{entity}", "lookup")
    spec = file.entities[entity]
    wanted = [one for field in spec.natural if (one := _wanted(file, entity, field, rng))]
    if not wanted:
        return None
    first = next((one for one in wanted if one.spec["type"] == "string"), wanted[0])
    others = [one for one in wanted if one is not first]
    status = spec.lifecycle_field
    if status and status not in spec.natural and rng.random() < 0.5:
        others += [one for one in [_wanted_value(file, entity, status)] if one]
    params = {first.name: first.spec}
    conditions = [first.condition]
    for one in others:
        params[one.name] = one.spec | {"optional": True}
        conditions.append(f"(args.{one.name} == null or {one.condition})")
    many = _plural(entity)
    read: dict[str, Any] = {
        "op": "read", "entity": entity, "where": " and ".join(conditions), "as": "found",
    }  # fmt: skip
    shown = _shown(file, spec, hidden, rng)
    ordered = [f for f in spec.fields if f in shown and spec.fields[f].type in _ORDERED]
    if ordered and rng.random() < 0.6:
        read["order_by"] = [rng.choice(("", "-")) + rng.choice(ordered)]
    if rng.random() < 0.25:
        params["limit"] = {
            "type": "integer", "optional": True, "default": 20, "min": 1, "max": 50,
            "description": f"{_words(many).capitalize()} at most, such as 10.",
        }  # fmt: skip
        read["limit"] = "args.limit"
    steps = [read]
    fails = rng.random() < 0.4
    if fails:
        steps.append(
            {
                "op": "require",
                "that": "exists(found)",
                "error": f"no_{entity}",
                "message": f"No {_words(entity)} was found for {{args.{first.name}}}.",
            }
        )
    fields = ", ".join(f"{name}: o.{path}" for name, path in shown.items())
    steps.append({"op": "return", "value": {many: f"[{{{fields}}} for o in found]"}})
    return ToolSpec.model_validate(
        {
            "name": _name(entity, first, taken, rng),
            "description": _description(entity, first, others, list(shown), rng),
            "params": params,
            "semantics": steps,
        }
    )


_ORDERED = ("integer", "number", "date", "datetime")


def _wanted(file: DomainFile, entity: str, field: str, rng: Random) -> _Wanted | None:
    kind = file.entities[entity].fields[field]
    if kind.type != "ref" or kind.to is None:
        return _wanted_value(file, entity, field)
    base, to = field.removesuffix("_id"), file.entities[kind.to]
    named = [f for f in to.natural if to.fields[f].type == "string"]
    words = _words(base)
    if not named or rng.random() < BY_ID:
        name = field if field.endswith("_id") else f"{field}_id"
        such = _first(file, kind.to, to.key)
        given = {"type": "string", "ref": kind.to, "description": f"Id of the {words}{such}."}
        return _Wanted(name, given, f"{entity}.{field} == args.{name}", words, of_row=True)
    name, such = f"{base}_{named[0]}", _first(file, kind.to, named[0])
    said = f"{_words(named[0]).capitalize()} of the {words}, or part of it{such}."
    given = {"type": "string", "description": said}
    return _Wanted(
        name, given, f"{entity}.{base}.{named[0]} contains args.{name}", words, of_row=True
    )


def _wanted_value(file: DomainFile, entity: str, field: str) -> _Wanted | None:
    kind, words, such = (
        file.entities[entity].fields[field],
        _words(field),
        _first(file, entity, field),
    )
    about = f"{words.capitalize()} of the {_words(entity)}"
    if words.split()[-1] in _LOOSE:
        about = f"What the {_words(entity)} has under {field}"
    match kind.type:
        case "string":
            given: dict[str, Any] = {
                "type": "string",
                "description": f"{about}, or part of it{such}.",
            }
            return _Wanted(field, given, f"{entity}.{field} contains args.{field}", words)
        case "date" | "datetime":
            name = f"{field.removesuffix('_at').removesuffix('_on')}_day"
            day = f"Only those with this day under {field}{such[:20]}."
            given = {"type": "date", "description": day}
            return _Wanted(name, given, f"date({entity}.{field}) == args.{name}", "day")
        case "enum":
            given = {"type": "enum", "values": list(kind.values), "description": f"{about}{such}."}
        case "integer" | "number":
            given = {"type": kind.type, "description": f"{about}{such}."}
            given |= {"unit": kind.unit} if kind.unit else {}
        case _:
            return None
    return _Wanted(field, given, f"{entity}.{field} == args.{field}", words)


def _first(file: DomainFile, entity: str, field: str) -> str:
    """An example from the seed."""
    rows = file.seed.get(entity) or []
    value = next((row[field] for row in rows if row.get(field) is not None), None)
    return "" if value is None else f", such as {value}"


def _shown(
    file: DomainFile, spec: EntitySpec, hidden: Collection[str], rng: Random
) -> dict[str, str]:
    """Name in the answer -> path from the row."""
    paths = {spec.key: spec.key}
    for field in spec.natural:
        paths |= _path(file, field, spec.fields[field])
    more = [
        field
        for field, kind in spec.fields.items()
        if field not in (spec.key, *spec.natural)
        and kind.type in (*_ORDERED, "enum", "boolean", "ref")
    ]
    first = [f for f in more if f == spec.lifecycle_field or spec.fields[f].type in _ORDERED]
    chosen = (rng.sample(first, len(first)) + [f for f in more if f not in first])[:SHOWN]
    chosen += [f for f in spec.fields if f in hidden and f not in (*chosen, *paths)]
    for field in sorted(chosen, key=list(spec.fields).index):
        paths |= {field: field} if field in hidden else _path(file, field, spec.fields[field])
    return paths


def _path(file: DomainFile, field: str, kind: FieldSpec) -> Mapping[str, str]:
    if kind.type != "ref" or kind.to is None:
        return {} if kind.type in ("list", "object") else {field: field}
    base, to = field.removesuffix("_id"), file.entities[kind.to]
    named = [f for f in to.natural if to.fields[f].type == "string"]
    return {base: f"{base}.{named[0]}"} if named else {field: field}


def _name(entity: str, first: _Wanted, taken: Sequence[str], rng: Random) -> str:
    by = first.name.removesuffix("_id")
    for form in rng.sample(_NAMES, len(_NAMES)):
        name = form.format(one=entity, many=_plural(entity), by=by)
        if name not in taken and len(name) <= 40:
            return name
    return f"find_{_plural(entity)}_by_{by}"


def _description(
    entity: str, first: _Wanted, others: list[_Wanted], shown: list[str], rng: Random
) -> str:
    forms = _BY_VALUE
    if first.spec["type"] == "string":
        forms = _BY_ROW if first.of_row else _BY_TEXT
    one, many = _words(entity), _words(_plural(entity))
    words = {"one": one, "many": many, "by": first.words, "a_one": _a(one), "a_by": _a(first.words)}
    said = [rng.choice(forms).format(**words)]
    if others:
        names = " and ".join(other.name for other in others)
        narrower = ("Can be narrowed by {}.", "With {} fewer are shown.", "Filters: {}.")
        said.append(rng.choice(narrower).format(names))
    said.append(f"Returns {_plural(entity)} (each with {', '.join(shown[:-1])} and {shown[-1]}).")
    return " ".join(said)


def _a(noun: str) -> str:
    return f"{'an' if noun[:1] in 'aeiou' else 'a'} {noun}"


def _words(name: str) -> str:
    return name.removesuffix("_id").replace("_", " ").strip()


def _plural(noun: str) -> str:
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "z", "ch", "sh")) else f"{noun}s"
