"""Names and slots of one tool while it is compiled, and where its problems go.

The compiler proper (`compiler.py`) is built on this: it asks here for typed expressions, and a
problem of one expression never stops it.
"""

from tool_specs.execution.programs import Entities, Problems, args_type
from tool_specs.language.domain_file import ToolSpec
from tool_specs.language.evaluation import (
    ARGS,
    FIRST_FREE,
    Evaluator,
    Scope,
    Typed,
    compile_condition,
    compile_expression,
    compile_template,
)
from tool_specs.language.expressions import parse, parse_template
from tool_specs.language.parameters import PlacedNode
from tool_specs.language.paths import expanded
from tool_specs.language.syntax.nodes import Node
from tool_specs.language.syntax.tokens import ExpressionError
from tool_specs.language.types import ANY, STRING, Type


class Bindings:
    """What is bound so far, by name; `index` is the statement that is being compiled."""

    def __init__(self, spec: ToolSpec, entities: Entities, problems: Problems) -> None:
        self.spec, self.entities, self.problems = spec, entities, problems
        self.names: dict[str, tuple[int, Type]] = {"args": (ARGS, args_type(spec))}
        self.num_slots = FIRST_FREE
        self.row_slots: dict[str, list[int]] = {name: [] for name in entities.types}
        self.errors: list[tuple[int, str]] = []
        self.nodes: list[PlacedNode] = []
        self.scans: list[int] = []
        self.bound: dict[str, str] = {}
        """Binding -> entity of the row, or the rows, that it holds."""
        self.whole = False
        self.index = 0

    def problem(self, where: str, message: str) -> None:
        path = f"tools[{self.spec.name}].semantics[{self.index}]"
        self.problems.add(f"{path}.{where}" if where else path, message)

    def scope(self) -> Scope:
        return Scope(self.names, self.entities.types)

    def parsed(self, where: str, text: str) -> Node | None:
        try:
            node = parse(text)
        except ExpressionError as error:
            self.problem(where, f"{text!r}: {error}")
            return None
        self.placed(where, node)
        return node

    def placed(self, where: str, node: Node) -> None:
        """Keep the tree for those who reason about the tool, its paths written out as lookups."""
        types = self.entities.types
        self.nodes.append((self.index, where, expanded(node, self.type_of, types).node))

    def type_of(self, name: str) -> Type | None:
        found = self.names.get(name)
        return None if found is None else found[1]

    def expression(self, where: str, text: str) -> Typed:
        node = self.parsed(where, text)
        try:
            if node is not None:
                return compile_expression(node, self.scope())
        except ExpressionError as error:
            self.problem(where, f"{text!r}: {error}")
        return Typed(lambda env: None, ANY)

    def condition(self, where: str, text: str) -> Evaluator:
        node = self.parsed(where, text)
        try:
            if node is not None:
                return compile_condition(node, self.scope())
        except ExpressionError as error:
            self.problem(where, f"{text!r}: {error}")
        return lambda env: False

    def message(self, text: str) -> Evaluator:
        try:
            template = parse_template(text)
            for part in template.parts:
                if isinstance(part, Node):
                    self.placed("message", part)
            return compile_template(template, self.scope())
        except ExpressionError as error:
            self.problem("message", f"{text!r}: {error}")
            return lambda env: text

    def bind(self, name: str, type_: Type) -> int:
        """A slot of its own for the name."""
        if name in self.names:
            self.problem("as", f"{name!r} is bound already; choose another name")
        slot = self.hidden(type_)
        self.names[name] = (slot, type_)
        return slot

    def hidden(self, type_: Type) -> int:
        """A slot without a name. Slots of rows are kept by entity, for updates to find them."""
        slot = self.num_slots
        self.num_slots += 1
        row = type_.of if type_.kind == "list" and type_.of is not None else type_
        if row.kind == "row" and row.entity is not None:
            self.row_slots[row.entity].append(slot)
        return slot

    def entity(self, name: str) -> bool:
        if name in self.entities.types:
            return True
        self.problem("entity", f"unknown entity {name!r}; known: {', '.join(self.entities.types)}")
        return False

    def target(self, name: str) -> tuple[int, str] | None:
        """Slot and entity of a binding that holds one row."""
        slot, type_ = self.names.get(name, (0, STRING))
        if type_.kind == "row" and type_.entity is not None:
            return slot, type_.entity
        rows = [n for n, (_, t) in self.names.items() if t.kind == "row"]
        self.problem("target", f"{name!r} is not a row; rows here: {', '.join(rows) or 'none'}")
        return None

    def declare(self, code: str) -> None:
        if code in ("invalid_arguments", "internal"):
            self.problem("error", f"{code!r} is reserved; choose a word for what went wrong")
        self.errors.append((self.index, code))
