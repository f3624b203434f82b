"""Places of what a tool says of time: its duration left out, and every node of its expression."""

from collections.abc import Iterator

from tool_specs.language.domain_file import DomainFile, ToolSpec
from tool_specs.language.expressions import parse, show
from tool_specs.language.jobs import seconds_in
from tool_specs.language.syntax.nodes import Node
from tool_specs.language.syntax.tokens import ExpressionError
from tool_specs.validation.mutation.exchanges import exchanges_of
from tool_specs.validation.mutation.mutants import Mutant, MutantPlace
from tool_specs.validation.mutation.trees import with_node
from tool_specs.validation.mutation.vocabulary import Vocabulary

NO_STATEMENT = -1
"""In place of a statement's index: the duration belongs to the call as a whole."""


def duration_places(spec: ToolSpec, file: DomainFile) -> Iterator[MutantPlace]:
    """None for a tool whose calls take no time."""
    for name in ("takes", "waits"):
        text = getattr(spec, name)
        if text is None:
            continue
        gone = Mutant(spec.model_copy(update={name: None}))
        yield MutantPlace(NO_STATEMENT, f"without {name} {text!r}", "dead_term", True, (gone,))
        if (tree := _expression(text)) is None:
            continue
        known = Vocabulary.of(spec, file, {})
        for exchange in exchanges_of(tree, known, condition=False):
            texts = [show(with_node(tree, exchange.path, new)) for new in exchange.alternatives]
            mutants = tuple(Mutant(spec.model_copy(update={name: text})) for text in texts)
            words = f"{name} {exchange.words}"
            yield MutantPlace(NO_STATEMENT, words, "dead_term", exchange.grave, mutants)


def _expression(text: str) -> Node | None:
    """None for a constant, and for what never compiled."""
    try:
        return None if seconds_in(text) is not None else parse(text)
    except ExpressionError:
        return None
