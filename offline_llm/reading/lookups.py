"""How to come by an identifier that the person did not give: which read to make next."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from offline_llm.reading.evidence import Evidence, ValueCandidate
from offline_llm.reading.filling import Words, fill, leftover
from offline_llm.reading.results import PastCall, ResultItem, Scalar, items_of, next_cursor
from offline_llm.reading.toolbox import Param, Tool, kin, speaks_of
from offline_llm.reading.words import plain, stem_set, stems

MAX_DEPTH = 2
"""Look-ups that may stand one behind the other for one identifier."""
_MARGIN = 0.15
"""Lead in support that the best candidate must have over the next."""


class ReadCall(NamedTuple):
    """A call of a reading tool that should be made next."""

    tool: Tool
    arguments: dict[str, Any]

    @property
    def values(self) -> list[str]:
        return [str(value) for value in self.arguments.values()]


class Value(NamedTuple):
    value: Scalar


class Unknown(NamedTuple):
    """Nothing leads to the value. `choices` are candidates between which the words decide not."""

    choices: tuple[Scalar, ...] = ()


@dataclass(frozen=True)
class Known:
    """All that an agent has to go by at one moment of a conversation."""

    tools: list[Tool]
    words: Words
    calls: list[PastCall]

    @cached_property
    def items(self) -> list[ResultItem]:
        return [item for call in self.calls for item in items_of(call)]

    @cached_property
    def family(self) -> dict[str, frozenset[str]]:
        return kin([p for tool in self.tools for p in tool.params])

    def is_new(self, read: ReadCall) -> bool:
        """Not called yet with these arguments, or in vain for a passing reason."""
        name, arguments = read.tool.name, read.arguments
        same = [c for c in self.calls if c.name == name and c.arguments == arguments]
        return not same or (same[-1].transient and len(same) < 4)


def evidence_for(
    param: Param, target: Tool, known: Known, arguments: dict[str, Any], path: tuple[Evidence, ...]
) -> Evidence:
    """`path`: evidence for the identifiers that this one is looked up for, the goal's first."""
    own = param.nouns | param.name_words
    above = frozenset(w for e in path for w in e.param.nouns | e.param.name_words)
    others = frozenset(w for e in path for w in e.others) | frozenset(
        w for p in target.params if p.is_id and p.name != param.name for w in p.nouns | p.name_words
    )
    return Evidence(
        words=known.words,
        items=known.items,
        param=param,
        nouns=param.nouns | known.family.get(param.prefix, frozenset()),
        others=others - own - above,
        about=above - own,
        clues=tuple(leftover(arguments, known.words)),
        taken=tuple(arguments.values()),
    )


def resolve(
    param: Param,
    target: Tool,
    known: Known,
    arguments: dict[str, Any],
    *,
    path: tuple[Evidence, ...] = (),
    may_read: bool = True,
) -> Value | ReadCall | Unknown:
    """The identifier by what is known, else the read that brings it nearer, else Unknown.

    Nothing is read when the words hold no clue beside the values in `arguments`.
    """
    evidence = evidence_for(param, target, known, arguments, path)
    ranked = evidence.candidates
    close = [c for c in ranked if ranked[0].score - c.score < _MARGIN]
    sure = len(close) == 1 and ranked[0].hard >= 1.0
    if sure and not _is_open(evidence, ranked[0]):
        return Value(ranked[0].value)
    read = None
    if may_read and len(path) <= MAX_DEPTH and evidence.speaks:
        read = _next_page(param, known) or _next_read(param, (*path, evidence), known)
        read = read or (None if path else _explaining(evidence, known))
    promises = read is not None and _promises(read, evidence)
    if sure and not promises:
        return Value(ranked[0].value)
    settled = len(ranked) > 1 and ranked[1].hard >= 1.0 and not evidence.unexplained
    if read and (promises or not settled):
        return read
    if len(close) == 1 and evidence.strong:
        return Value(ranked[0].value)
    return Unknown(tuple(c.value for c in close))


def _is_open(evidence: Evidence, best: ValueCandidate) -> bool:
    """Something was said that nothing seen so far bears out, or a row was meant that the best
    candidate does not name: one more read may show another candidate."""
    named = {*best.item.refers, *best.item.lies_in}
    return bool(evidence.unexplained) or any(key not in named for key in evidence.lent)


def _promises(read: ReadCall, evidence: Evidence) -> bool:
    """The read asks for what is open."""
    texts = [m.text for m in evidence.unexplained]
    texts += [m.text[:10] for m in evidence.unexplained if m.kind == "datetime"]
    return any(value in texts or value in evidence.lent for value in read.values)


def _best(options: list[tuple[float, ReadCall]]) -> ReadCall | None:
    options.sort(key=lambda pair: (-pair[0], pair[1].tool.name))
    return options[0][1] if options else None


def _explaining(evidence: Evidence, known: Known) -> ReadCall | None:
    """A read that asks for a clue which leads nowhere yet: what it finds may be referred to."""
    options: list[tuple[float, ReadCall]] = []
    for mention in evidence.unexplained:
        for tool in known.tools:
            near = len(set(mention.left) & {*tool.head_words, *tool.name_words})
            words = known.words.only([mention])
            read = ReadCall(tool, fill(tool, words, lookup=True) if near and tool.reads else {})
            complete = all(p.name in read.arguments for p in tool.required)
            if read.arguments and complete and known.is_new(read):
                options.append((near, read))
    return _best(options)


def producers(param: Param, nouns: frozenset[str], tools: list[Tool]) -> list[tuple[float, Tool]]:
    """Reading tools that seem to return the identifier, the better the higher the number."""
    found = []
    for tool in tools:
        if not tool.reads or any(p.name == param.name and p.required for p in tool.params):
            continue
        name, heads = param.name.lower(), [f[:-3] for f in tool.returns if f.endswith("_id")]
        score = 2.0 if name in tool.returns or name.rstrip("s") in tool.returns else 0.0
        score += 2.0 if any(nouns & set(stems(plain(head))[-1:]) for head in heads) else 0.0
        if speaks_of(tool.name_words, nouns):
            score += 2.0
        elif speaks_of(tool.head_words, nouns):
            score += 1.0
        if score:
            found.append((score, tool))
    return found


def _next_page(param: Param, known: Known) -> ReadCall | None:
    """The next page of the last result that named such identifiers and went on."""
    for call in reversed(known.calls):
        tool = next((t for t in known.tools if t.name == call.name), None)
        cursor = tool and next((p for p in tool.params if p.is_cursor), None)
        token = next_cursor(call) if cursor and not call.error else None
        if tool and cursor and token and speaks_of(tool.name_words, param.nouns):
            read = ReadCall(tool, call.arguments | {cursor.name: token})
            if known.is_new(read):
                return read
    return None


def _next_read(param: Param, path: tuple[Evidence, ...], known: Known) -> ReadCall | None:
    options: list[tuple[float, ReadCall]] = []
    for score, tool in producers(param, path[-1].nouns, known.tools):
        for rank, read in enumerate(_reads_of(tool, path, known)):
            new = [m for m in path[-1].unexplained if m.text in read.values]
            used = 1.5 * len(new) + 0.5 * min(2, len(read.arguments))
            detour = 0.5 * (read.tool.name != tool.name) + 0.2 * len(path)
            options.append((score + used - rank - detour, read))
    return _best(options)


def _reads_of(tool: Tool, path: tuple[Evidence, ...], known: Known) -> list[ReadCall]:
    """The call of this tool that the words allow and its wider variants, or what it waits for."""
    target, evidence = path[0], path[-1]
    said = fill(tool, known.words.only(target.clues), lookup=True, prefer=evidence.weight)
    arguments = {k: v for k, v in said.items() if v not in target.taken}
    texts = set(map(str, arguments.values()))
    is_open = any(m.text not in texts for m in evidence.unexplained)
    for param in tool.params:
        if param.name in arguments or not param.is_id:
            continue
        # an optional filter is worth a read only while some clue leads nowhere yet
        step = resolve(param, tool, known, {}, path=path, may_read=param.required or is_open)
        if isinstance(step, Value):
            arguments[param.name] = step.value
        elif isinstance(step, ReadCall):
            return [step]
    for param in tool.required:
        if arguments.setdefault(param.name, _standard(param, known)) is None:
            return []
    reads = [ReadCall(tool, variant) for variant in (arguments, *_wider(tool, arguments))]
    return [read for read in reads if known.is_new(read)]


def _standard(param: Param, known: Known) -> Any:
    """A value for a required argument that nobody named: its default, what an earlier call
    used, or a fixed value that some text near the goal makes likely."""
    if param.is_id or "default" in param.schema:
        return param.schema.get("default")
    for call in reversed(known.calls):
        if not call.error and param.name in call.arguments:
            return call.arguments[param.name]
    if not param.enum or len(param.enum) > 3:
        return None
    said = stem_set(known.words.text)
    return [*(value for value in param.enum if said & set(stems(str(value)))), *param.enum][0]


def _wider(tool: Tool, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    """Fewer filters, for when all of them together find nothing."""
    needed = {p.name: arguments[p.name] for p in tool.required if p.name in arguments}
    optional = {k: v for k, v in arguments.items() if k not in needed}
    single = [needed | {k: v} for k, v in optional.items()] if len(optional) > 1 else []
    return [*single, needed] if optional else []
