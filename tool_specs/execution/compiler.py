"""Tool semantics compiled once: statements to closures, with every static check on the way.

What a statement does at run time is in `execution.py`; this file names slots, types expressions
and collects problems, all of them and not just the first, so that an author or a model repairs a
tool in one go.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tool_specs.execution import statements as execution
from tool_specs.execution.bindings import Bindings
from tool_specs.execution.durations import compile_duration, duration_node
from tool_specs.execution.fields import check_of, refs_of
from tool_specs.execution.planning import ProbePlan, plan_of
from tool_specs.execution.programs import Program
from tool_specs.language.evaluation import Evaluator, Typed
from tool_specs.language.expressions import names_in, parse, walk
from tool_specs.language.parameters import hints_of, unread
from tool_specs.language.schemas import Validator
from tool_specs.language.statements import (
    AnyStatement,
    Create,
    Delete,
    ForEach,
    Let,
    Link,
    Read,
    Require,
    Return,
    Statement,
    Update,
    When,
    body_of,
    expression_text,
)
from tool_specs.language.syntax.nodes import Record
from tool_specs.language.syntax.tokens import ExpressionError
from tool_specs.language.types import (
    ANY,
    BOOLEAN,
    STRING,
    Type,
    json_schema,
    list_of,
    mismatch,
    nullable,
)

_RETURN_DEPTH = 4
"""Objects inside objects of a returned value."""


def spells_out_record(text: str) -> bool:
    try:
        return any(isinstance(node, Record) for node in walk(parse(text)))
    except ExpressionError:
        return False  # said where the expression is compiled


class Compiler(Bindings):
    """Compiles one tool; problems go to the list, and the rest is compiled all the same."""

    def compile(self) -> Program:
        steps = self.block(list(enumerate(self.spec.semantics)), None)
        answer, output = self.answer()
        takes = compile_duration(self.spec, self.entities, self.problems)
        if (node := duration_node(self.spec)) is not None:
            self.nodes.append((self.index, *node))
        self.unused_params()
        self.unused_lets()
        keys = {name: entity.key for name, entity in self.entities.file.entities.items()}
        return Program(
            spec=self.spec,
            steps=tuple(steps),
            answer=answer,
            num_slots=self.num_slots,
            errors=tuple(self.errors),
            output_schema=json_schema(output),
            validator=Validator(self.spec.input_schema()),
            nodes=tuple(self.nodes),
            scans=tuple(self.scans),
            hints=hints_of(self.spec.semantics, self.nodes, self.bound, keys),
            rows=dict(self.bound),
            whole=self.whole,
            takes=takes,
        )

    def block(
        self, statements: Sequence[tuple[int, AnyStatement]], owner: str | None
    ) -> list[execution.CompiledStep]:
        """Statements in order; those that follow a for_each or when with its name are its body."""
        steps: list[execution.CompiledStep] = []
        position = 0
        while position < len(statements):
            self.index, statement = statements[position]
            position += 1
            if statement.inside != owner:
                words = f"no for_each or when named {statement.inside!r} directly above"
                self.problem("in", words)
            if isinstance(statement, ForEach | When):
                body = body_of(statement, statements[position:])
                position += len(body)
                step = (
                    self.for_each(statement, body)
                    if isinstance(statement, ForEach)
                    else self.when(statement, body)
                )
                steps.append(step)
            elif isinstance(statement, Return):
                if self.index != len(self.spec.semantics) - 1:
                    self.problem("", "return must be the last statement")
            elif step := self.step(statement):
                steps.append(execution.numbered(step, self.index))
        return steps

    def step(self, statement: Statement) -> execution.CompiledStep | None:
        match statement:
            case Read():
                return self.read(statement)
            case Require():
                condition = self.condition("that", statement.that)
                self.declare(statement.error)
                return execution.require(
                    condition, statement.error, self.message(statement.message)
                )
            case Create():
                return self.create(statement)
            case Update():
                return self.update(statement)
            case Delete():
                found = self.target(statement.target)
                return found and execution.delete(*found, key=self.key_of(found[1]))
            case Link():
                return self.link(statement)
            case Let():
                return self.let(statement)
        return None

    def key_of(self, entity: str) -> str:
        return self.entities.file.entities[entity].key

    def read(self, s: Read) -> execution.CompiledStep | None:
        if not self.entity(s.entity):
            return None
        self.bound[s.bind] = s.entity
        if s.key is not None:
            return self.read_one(s)
        row = self.entities.types[s.entity]
        limit = self.number("limit", s.limit)
        cursor = self.expression("cursor", s.cursor).run if s.cursor is not None else None
        candidate, where, plan = self.filter(s)
        order = [self.order(s.entity, text) for text in s.order_by]
        slot, following = (
            self.bind(s.bind, list_of(row)),
            self.bind(f"{s.bind}_next", nullable(STRING)),
        )
        return execution.read_page(
            execution.PageRead(
                entity=s.entity,
                candidate=candidate,
                where=where,
                plan=plan,
                order=tuple(order),
                limit=limit,
                cursor=cursor,
                slot=slot,
                next_slot=following,
                whole=self.gives_whole(s),
            )
        )

    def gives_whole(self, s: Read) -> bool:
        """Whether a read without a limit is of all rows: it takes no cursor, and nobody looks at
        the cursor of a next page."""
        looked_at = re.search(rf"\b{s.bind}_next\b", str(self.spec.semantics))
        if s.cursor is not None or looked_at:
            return False
        self.whole = True
        return True

    def read_one(self, s: Read) -> execution.CompiledStep:
        for name in ("where", "limit", "cursor"):
            if getattr(s, name) is not None:
                self.problem(name, "belongs to a read with where, not to one with key")
        if s.order_by:
            self.problem("order_by", "belongs to a read with where, not to one with key")
        key = self.expression("key", s.key or "null")
        dangles = not key.kept or key.type.kind != "ref" or key.type.nullable
        reason = mismatch(key.type, Type("ref", entity=s.entity))
        if reason:
            self.problem("key", f"{s.key!r}: {reason}")
        declares = {"error", "message"} & s.model_fields_set
        if declares or dangles:
            self.declare(s.error)
        message = self.message(s.message) if s.message is not None else None
        slot = self.bind(s.bind, self.entities.types[s.entity])
        return execution.read_one(s.entity, key.run, slot, s.error, message)

    def filter(self, s: Read) -> tuple[int, Evaluator | None, ProbePlan]:
        """Slot of the candidate row, the condition, and the indexes that serve it."""
        if s.error != "not_found" or s.message is not None:
            self.problem("error", "a read with where finds no rows without failing; add a require")
        row = self.entities.types[s.entity]
        candidate = self.num_slots
        self.num_slots += 1
        if s.where is None:
            return candidate, None, ()
        outer = self.scope()
        self.names = {**self.names, s.entity: (candidate, row)}
        condition = self.condition("where", s.where)
        self.names = dict(outer.names)
        try:
            spec = self.entities.file.entities[s.entity]
            keys = {name: e.key for name, e in self.entities.file.entities.items()}
            plan, covers = plan_of(parse(s.where), spec, s.entity, outer, keys)
        except ExpressionError:
            return candidate, condition, ()  # said above
        if not covers:
            self.scans.append(self.index)
        return candidate, condition, plan

    def order(self, entity: str, text: str) -> tuple[str, bool]:
        """`-field` is descending."""
        field, fields = text.removeprefix("-"), self.entities.types[entity].fields or {}
        if field not in fields or fields[field].kind in ("list", "object"):
            self.problem("order_by", f"cannot order by {text!r}; fields: {', '.join(fields)}")
        return field, text.startswith("-")

    def number(self, where: str, text: str | None) -> Evaluator | None:
        if text is None:
            return None
        run, type_, _ = self.expression(where, text)
        if type_.kind not in ("integer", "any", "null"):
            self.problem(where, f"{text!r}: needs a whole number, got {type_}")
        return run

    def sets(self, entity: str, values: Mapping[str, str]) -> list[execution.FieldAssignment]:
        spec, sets = self.entities.file.entities[entity], []
        refs = refs_of(spec)
        for field, text in values.items():
            run, type_, _ = self.expression(f"set.{field}", text)
            if field not in spec.fields:
                known = ", ".join(spec.fields)
                self.problem(f"set.{field}", f"{entity} has no such field; fields: {known}")
                continue
            exact = spells_out_record(text)
            reason = mismatch(type_, spec.fields[field].as_type(), exact=exact)
            if reason:
                self.problem(f"set.{field}", f"{text!r}: {reason}")
            sets.append(
                execution.FieldAssignment(field, run, check_of(spec.fields[field]), refs.get(field))
            )
        return sets

    def create(self, s: Create) -> execution.CompiledStep | None:
        if not self.entity(s.entity):
            return None
        spec = self.entities.file.entities[s.entity]
        if spec.prefix is not None and spec.key in s.set:
            self.problem(f"set.{spec.key}", f"create makes the key, {spec.prefix} and a number")
        made = {spec.key} if spec.prefix is not None else set()
        missing = [
            name
            for name, field in spec.fields.items()
            if not field.optional and name not in s.set and name not in made
        ]
        if missing:
            self.problem("set", f"{s.entity} needs {', '.join(missing)} as well")
        sets = self.sets(s.entity, s.set)
        row = self.entities.types[s.entity]
        if s.bind is not None:
            self.bound[s.bind] = s.entity
        slot = self.hidden(row) if s.bind is None else self.bind(s.bind, row)
        return execution.create(s.entity, spec, sets, slot)

    def update(self, s: Update) -> execution.CompiledStep | None:
        found = self.target(s.target)
        if found is None:
            return None
        slot, entity = found
        key = self.key_of(entity)
        if key in s.set:
            self.problem(f"set.{key}", "a key never changes; create another row")
        sets = self.sets(entity, s.set)
        return execution.update(entity, key, slot, sets, self.row_slots[entity])

    def link(self, s: Link) -> execution.CompiledStep | None:
        found = self.target(s.target)
        if found is None:
            return None
        slot, entity = found
        spec = self.entities.file.entities[entity]
        field = spec.fields.get(s.field)
        if field is None or field.type != "list":
            lists = [n for n, f in spec.fields.items() if f.type == "list"]
            self.problem("field", f"{s.field!r} is not a list of {entity}; lists: {lists}")
            return None
        run, type_, _ = self.expression("to", s.to)
        item = field.as_type().of
        if item is not None and (reason := mismatch(type_, item)):
            self.problem("to", f"{s.to!r}: {reason}")
        change = execution.FieldAssignment(s.field, run, check_of(field), field.to)
        slots = self.row_slots[entity]
        return execution.link(entity, spec.key, slot, change, slots, add=s.op == "link")

    def let(self, s: Let) -> execution.CompiledStep:
        value = self.expression("be", s.be)
        self.holds(s.bind, value.type)
        return execution.let(value.run, self.bind(s.bind, value.type))

    def holds(self, name: str, type_: Type) -> None:
        """Note whose rows a name holds, if any."""
        row = type_.of if type_.kind == "list" and type_.of is not None else type_
        if row.kind == "row" and row.entity is not None:
            self.bound[name] = row.entity

    def for_each(
        self, s: ForEach, body: Sequence[tuple[int, AnyStatement]]
    ) -> execution.CompiledStep:
        index = self.index
        over = self.expression("over", s.over)
        if over.type.kind not in ("list", "any"):
            self.problem("over", f"{s.over!r}: needs a list, got {over.type}")
        self.check_body(s.bind, body, ForEach, Return)
        rows, outer = self.hidden(over.type), set(self.names)
        item = over.type.of or ANY
        self.holds(s.bind, item)
        slot = self.bind(s.bind, item)
        steps = self.block(body, s.bind)
        self.index = index
        made = [(n, *self.names[n]) for n in self.names if n not in outer and n != s.bind]
        self.names = {n: found for n, found in self.names.items() if n in outer}
        gathered = [(inner, self.bind(name, list_of(type_))) for name, inner, type_ in made]
        return execution.for_each(over.run, rows, slot, steps, gathered)

    def when(self, s: When, body: Sequence[tuple[int, AnyStatement]]) -> execution.CompiledStep:
        """What the body binds is null where the condition did not hold; the name is whether it
        did."""
        index = self.index
        condition = self.condition("that", s.that)
        self.check_body(s.bind, body, Return)
        slot = self.bind(s.bind, BOOLEAN)
        outer, self.names = self.names, dict(self.names)
        steps = self.block(body, s.bind)
        self.index = index
        made = {n: found for n, found in self.names.items() if n not in outer}
        self.names = outer | {n: (inner, nullable(type_)) for n, (inner, type_) in made.items()}
        return execution.when(condition, slot, steps, [inner for inner, _ in made.values()])

    def check_body(
        self, name: str, body: Sequence[tuple[int, AnyStatement]], *refused: type[Statement]
    ) -> None:
        index, kind = self.index, self.spec.semantics[self.index].op
        if not body:
            self.problem("", f"no statement below carries in: {name}")
        for self.index, statement in body:
            if isinstance(statement, refused):
                self.problem("in", f"{statement.op} cannot stand inside a {kind}")
        self.index = index

    def answer(self) -> tuple[Evaluator, Type]:
        last = self.spec.semantics[-1]
        self.index = len(self.spec.semantics) - 1
        if not isinstance(last, Return):
            self.problem("", "the last statement must be a return")
            return (lambda env: None), ANY
        run, type_, _ = self.returned("value", last.value, 1)
        return (lambda env: execution.plain(run(env))), type_

    def returned(self, where: str, value: Any, depth: int) -> Typed:
        if not isinstance(value, dict):
            text = expression_text(value)
            return self.expression(where, text)
        if depth > _RETURN_DEPTH:
            self.problem(where, f"nested deeper than {_RETURN_DEPTH} levels")
            return self.expression(where, "null")
        parts = {str(n): self.returned(f"{where}.{n}", v, depth + 1) for n, v in value.items()}
        runs = [(name, part.run) for name, part in parts.items()]
        type_ = Type("object", fields={name: part.type for name, part in parts.items()})
        return Typed(lambda env: {name: run(env) for name, run in runs}, type_)

    def unused_params(self) -> None:
        """A parameter that nothing reads would be a lie to the model that fills it in."""
        for path in unread(self.spec, self.nodes):
            where = f"tools[{self.spec.name}].params.{'.'.join(path)}"
            self.problems.add(where, "nothing in the semantics reads it")

    def unused_lets(self) -> None:
        """Only what is read is worth a name."""
        read = {name for _, _, node in self.nodes for name in names_in(node)}
        read |= {s.target for s in self.spec.semantics if isinstance(s, Update | Delete | Link)}
        for index, statement in enumerate(self.spec.semantics):
            self.index = index
            if isinstance(statement, Let) and statement.bind not in read:
                self.problem("as", f"nothing reads {statement.bind!r}; leave this statement out")
