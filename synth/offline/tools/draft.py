"""One tool in the making: parameters, statements and wording, and its wire form."""

from typing import Any

from synth.offline.tools.english import article, listed, sentence, spaced
from synth.offline.tools.logic import others_guards, own_guards
from synth.offline.tools.outline import Entity, Field, Outline
from tool_specs.expressions import Access, Name, names_in, parse, walk


class Impossible(Exception):
    """The pattern does not fit here; the tool is left out."""


class Draft:
    """Statements are added in order; `loop` makes those that follow the body of a for_each."""

    def __init__(self, outline: Outline, name: str, text: str) -> None:
        self.outline, self.name, self.text = outline, name, sentence(text)
        self.params: dict[str, dict[str, Any]] = {}
        self.steps: list[dict[str, Any]] = []
        self.notes: list[str] = []
        self.refusals: list[str] = []
        self.value: dict[str, Any] = {}
        self.shown: list[str] = []
        self.inside: str | None = None
        self.known: dict[str, str] = {}

    # parameters

    def param(self, name: str, type_: str, description: str, **more: Any) -> str:
        """Declares it and gives the expression that reads it."""
        member = {"name": name, "type": type_, "description": sentence(description)}
        self.params[name] = member | {k: v for k, v in more.items() if v is not None}
        return f"args.{name}"

    def id_of(self, entity: Entity, what: str = "", *, name: str = "", **more: Any) -> str:
        """Parameter for an id of the entity."""
        words = f"Id of the {what or entity.words}, such as {example_id(entity)}"
        return self.param(name or entity.key, "string", words, ref=entity.name, **more)

    def of_field(self, field: Field, *, name: str = "", words: str = "", **more: Any) -> str:
        """Parameter that takes a value of the field."""
        member = member_of(self.outline, field, name=name, words=words)
        member |= {k: v for k, v in more.items() if v is not None}
        self.params[member["name"]] = member
        return f"args.{member['name']}"

    @property
    def given(self) -> frozenset[str]:
        """Arguments that are never null."""
        return frozenset(
            f"args.{n}" for n, p in self.params.items() if not p.get("optional") or "default" in p
        )

    # statements

    def step(self, op: str, **members: Any) -> None:
        inside = {"in": self.inside} if self.inside else {}
        self.steps.append({"op": op} | inside | {k: v for k, v in members.items() if v is not None})

    def row(self, entity: Entity, key: str = "", *, bind: str = "") -> str:
        """Reads one row; without a key by a parameter of its own."""
        bind = bind or entity.name
        self.step("read", entity=entity.name, key=key or self.id_of(entity), **{"as": bind})
        return bind

    def rows(self, entity: Entity, where: str | None, bind: str, **more: Any) -> str:
        self.step("read", entity=entity.name, where=where or None, **{"as": bind}, **more)
        return bind

    def require(self, that: str, error: str, message: str, clause: str) -> None:
        self.step("require", that=that, error=error, message=message)
        if clause not in self.refusals:
            self.refusals.append(clause)

    def in_status(self, entity: Entity, row: str, statuses: list[str]) -> None:
        """The row's status must be one of these; nothing when that is all of them."""
        status = entity.status
        assert status is not None
        if set(statuses) >= set(status.values):
            return
        if len(statuses) == 1:
            that, error = f"{row}.{status.name} == '{statuses[0]}'", f"not_{statuses[0]}"
            self.known[f"{row}.{status.name}"] = f"'{statuses[0]}'"
        else:
            that = f"{row}.{status.name} in [{', '.join(repr(s) for s in statuses)}]"
            error = f"wrong_{status.name}"
        words = listed([spaced(s) for s in statuses], "or")
        self.require(
            that,
            error,
            f"{{{row}.{entity.key}}} is {{{row}.{status.name}}}, not {words}.",
            f"the {status.words} is not {words}",
        )

    def guard(self, entity: Entity, new: dict[str, str], row: str | None) -> None:
        """Requires what the rules of the domain ask of the row with these new values."""
        guards = own_guards(
            self.outline, entity, new, row=row, known=self.known, given=self.given
        )
        if guards is None:
            raise Impossible
        more = [] if row is None else others_guards(self.outline, entity, new, row=row)
        if self.inside and more:
            raise Impossible  # a read of rows for every turn; another pattern does it
        for number, guard in enumerate([*guards, *more]):
            clause = guard.message.rstrip(".")
            clause = f"it would break the rule that {clause[:1].lower()}{clause[1:]}"
            if not guard.entity:
                self.require(guard.that, guard.error, guard.message, clause)
                continue
            if any(s.get("as") == guard.entity for s in self.steps):
                raise Impossible  # the candidate row would hide a binding that the rule may need
            bind = f"broken_{guard.entity}" + ("_too" if number > len(guards) else "")
            self.rows(self.outline[guard.entity], guard.that, bind, limit="1")
            self.require(f"not exists({bind})", guard.error, guard.message, clause)

    def update(self, entity: Entity, row: str, new: dict[str, str], *, guarded: bool = True) -> None:
        if guarded:
            self.guard(entity, new, row)
        self.bounded(entity, row, new)
        self.step("update", target=row, set=pairs(new))

    def bounded(self, entity: Entity, row: str, new: dict[str, str]) -> None:
        """Sums and differences must stay within the bounds of their field."""
        for name, text in new.items():
            field = entity.fields[name]
            for bound, sign, word in (("min", ">=", "below"), ("max", "<=", "above")):
                limit = field.bounds.get(bound)
                if limit is None or not _may_leave(text, bound, name):
                    continue
                self.require(
                    f"{text} {sign} {limit}",
                    f"{field.noun}_{'too_low' if bound == 'min' else 'too_high'}",
                    f"{sentence(field.words)[:-1]} of {{{row}.{entity.key}}} would go {word} {limit}.",
                    f"the {field.words} would go {word} {limit}",
                )

    def create(self, entity: Entity, new: dict[str, str], bind: str, *, guarded: bool = True) -> str:
        if guarded:
            self.guard(entity, new, None)
        self.step("create", entity=entity.name, set=pairs(new), **{"as": bind})
        return bind

    def loop(self, over: str, bind: str) -> str:
        self.step("for_each", over=over, **{"as": bind})
        self.inside = bind
        return bind

    def done(self) -> None:
        """Ends the body of a for_each."""
        self.inside = None

    # the answer

    def answer(self, **values: Any) -> "Draft":
        self.value |= values
        return self

    def told(self, text: str) -> "Draft":
        """A further sentence of the description."""
        self.notes.append(sentence(text))
        return self

    def description(self) -> str:
        returned = self.shown or [
            spaced(n) if isinstance(v, dict) else n for n, v in self.value.items()
        ]
        parts = [self.text, *self.notes, f"Returns {listed(returned)}."]
        if self.refusals:
            parts.append(f"Refuses when {listed(self.refusals[:4], 'or')}.")
        return " ".join(parts)

    def wire(self, parent: str = "") -> dict[str, Any]:
        value = [*self.steps, {"op": "return", "value": pairs(flat(self.value))}]
        return {
            "name": self.name,
            "description": self.description()[:1000],
            "parent": parent,
            "params": list(self.params.values()),
            "semantics": value,
        }


def pairs(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": name, "value": value} for name, value in values.items()]


def flat(value: dict[str, Any], path: str = "") -> dict[str, Any]:
    """Nested objects with dotted names."""
    found: dict[str, Any] = {}
    for name, part in value.items():
        found |= flat(part, f"{path}{name}.") if isinstance(part, dict) else {path + name: part}
    return found


def example_id(entity: Entity) -> str:
    if entity.sample:
        return str(entity.sample[0].get(entity.key))
    return f"{entity.spec.get('prefix') or ''}1001"


def member_of(
    outline: Outline, field: Field, *, name: str = "", words: str = ""
) -> dict[str, Any]:
    """A parameter, or a member of an object parameter, for a value of the field."""
    owner = spaced(field.entity)
    text = words or field.spec.get("description") or f"{field.words} of the {owner}"
    member: dict[str, Any] = {"name": name or field.name, "type": field.type}
    if field.unit:
        member["unit"] = field.unit
    match field.type:
        case "ref":
            entity = outline[field.to]
            text = f"Id of the {field.words}, such as {example_id(entity)}"
            member |= {"type": "string", "ref": field.to}
        case "enum":
            member["values"] = list(field.values)
        case "integer" | "number":
            member |= field.bounds
            text += f", in {field.unit}" if field.unit and not words else ""
        case "list":
            if field.of == "object":
                if not field.properties:
                    raise Impossible
                fields = [member_of(outline, p) for p in field.properties]
                member |= {"type": "array", "items": "object", "fields": fields, "max": 10}
            else:
                ref = {"ref": field.to} if field.of == "ref" else {}
                items = "string" if field.of == "ref" else field.of
                member |= {"type": "array", "items": items, "max": 10} | ref
        case "object":
            if not field.properties:
                raise Impossible
            member["fields"] = [member_of(outline, p) for p in field.properties]
        case "string":
            quoted = [str(v) for v in _samples(outline, field) if v and "'" not in str(v)][:2]
            text = text.rstrip(".")
            text += f", such as {listed([repr(v) for v in quoted], 'or')}" if quoted else ""
            member |= {"min": 1, "max": 200}
    return member | {"description": sentence(text)}


def _samples(outline: Outline, field: Field) -> list[Any]:
    entity = outline.entities.get(field.entity)
    rows = entity.sample if entity else ()
    return list(dict.fromkeys(v for row in rows if isinstance(v := row.get(field.name), str)))


def _may_leave(text: str, bound: str, field: str) -> bool:
    """Whether a new value that is reckoned may pass the bound: by the sign of what is added."""
    tree = parse(text)
    operator = getattr(tree, "operator", "")
    if operator not in ("+", "-"):
        return False
    return (operator == "-") == (bound == "min")


def label(outline: Outline, entity: Entity, row: str) -> str:
    """Expression for how people call the row."""
    field = entity.title
    return f"{row}.{field.name if field else entity.key}"


def parent_label(outline: Outline, field: Field, row: str) -> str:
    """Expression for how people call the row that the reference points at."""
    entity = outline[field.to]
    shown = entity.title.name if entity.title else entity.key
    return f"lookup('{entity.name}', {row}.{field.name}).{shown}"


def bindings_of(text: str) -> frozenset[str]:
    return names_in(parse(text))


def fields_read(text: str, binding: str) -> set[str]:
    found = (n for n in walk(parse(text)) if isinstance(n, Access) and n.base == Name(binding))
    return {n.field for n in found}


def subject(entity: Entity) -> str:
    return article(entity.words)
