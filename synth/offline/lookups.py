"""How to come by an identifier that the person did not give: which read to make next."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from synth.offline.evidence import Candidate, Evidence
from synth.offline.filling import Words, assign, fill, leftover
from synth.offline.results import Call, Item, Scalar, items_of, next_cursor
from synth.offline.toolbox import Param, Tool, kin, speaks_of
from synth.offline.words import plain, stem_set, stems

MAX_DEPTH = 2
"""Look-ups that may stand one behind the other for one identifier."""
_MARGIN = 0.15
"""Lead in support that the best candidate must have over the next."""


@dataclass(frozen=True)
class Read:
    """A call of a reading tool that should be made next."""

    tool: Tool
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Value:
    value: Scalar


@dataclass(frozen=True)
class Unknown:
    """Nothing leads to the value. `choices` are candidates between which the words decide not."""

    choices: tuple[Scalar, ...] = ()


@dataclass(frozen=True)
class Known:
    """All that an agent has to go by at one moment of a conversation."""

    tools: list[Tool]
    words: Words
    calls: list[Call]

    @cached_property
    def items(self) -> list[Item]:
        return [item for call in self.calls for item in items_of(call)]

    @cached_property
    def family(self) -> dict[str, frozenset[str]]:
        return kin([p for tool in self.tools for p in tool.params])

    def tried(self, tool: Tool, arguments: dict[str, Any]) -> bool:
        """Called already with these arguments, and no passing failure leaves a reason to again."""
        same = [
            call
            for call in self.calls
            if call.name == tool.name and (call.arguments or {}) == arguments
        ]
        return bool(same) and (not same[-1].transient or len(same) >= 4)


def evidence_for(
    param: Param, goal: Tool, known: Known, arguments: dict[str, Any], path: tuple[Evidence, ...]
) -> Evidence:
    """`path`: evidence for the identifiers that this one is looked up for, the goal's first."""
    family = known.family.get(param.prefix, frozenset())
    own = param.nouns | param.name_words
    above = frozenset(w for e in path for w in e.param.nouns | e.param.name_words)
    siblings = [p for p in goal.params if p.is_id and p.name != param.name]
    others = frozenset(w for p in siblings for w in p.nouns | p.name_words)
    others |= frozenset(w for e in path for w in e.others)
    clues = leftover(arguments, known.words)
    return Evidence(
        words=known.words,
        items=known.items,
        param=param,
        nouns=param.nouns | family,
        others=others - own - above,
        about=above - own,
        clues=tuple(clues),
        taken=tuple(arguments.values()),
    )


def resolve(
    param: Param,
    goal: Tool,
    known: Known,
    arguments: dict[str, Any],
    *,
    path: tuple[Evidence, ...] = (),
    may_read: bool = True,
) -> Value | Read | Unknown:
    """The identifier by what is known, else the read that brings it nearer, else Unknown.

    Nothing is read when the words hold no clue beside the values in `arguments`.
    """
    evidence = evidence_for(param, goal, known, arguments, path)
    candidates = evidence.candidates
    clear = bool(candidates) and (
        len(candidates) == 1 or candidates[0].score - candidates[1].score >= _MARGIN
    )
    sure = clear and candidates[0].hard >= 1.0
    if sure and not _is_open(evidence, candidates[0]):
        return Value(candidates[0].value)
    read = None
    if may_read and len(path) <= MAX_DEPTH and evidence.speaks:
        read = _next_page(param, known) or _next_read(param, (*path, evidence), known)
        read = read or (None if path else _explaining(evidence, known))
    if sure and not (read and _promises(read, evidence)):
        return Value(candidates[0].value)
    settled = len(candidates) > 1 and candidates[1].hard >= 1.0 and not evidence.unexplained
    if read and (not settled or _promises(read, evidence)):
        return read
    if clear and evidence.strong:
        return Value(candidates[0].value)
    best = [c.value for c in candidates if candidates[0].score - c.score < _MARGIN]
    return Unknown(tuple(best))


def _is_open(evidence: Evidence, best: Candidate) -> bool:
    """Something was said that nothing seen so far bears out, or a row was meant that the best
    candidate does not name: one more read may show another candidate."""
    named = {*best.item.refers, *best.item.lies_in}
    return bool(evidence.unexplained) or any(key not in named for key in evidence.lent)


def _promises(read: Read, evidence: Evidence) -> bool:
    """The read asks for what is open."""
    values = [str(value) for value in read.arguments.values()]
    open_texts = [m.text for m in evidence.unexplained]
    open_texts += [m.text[:10] for m in evidence.unexplained if m.kind == "datetime"]
    return any(value in open_texts or value in evidence.lent for value in values)


def _explaining(evidence: Evidence, known: Known) -> Read | None:
    """A read that asks for a clue which leads nowhere yet: what it finds may be referred to."""
    options = []
    for mention in evidence.unexplained:
        for tool in known.tools:
            arguments = fill(tool, known.words.only([mention]), lookup=True) if tool.reads else {}
            if not arguments or any(p.name not in arguments for p in tool.required):
                continue
            if not known.tried(tool, arguments):
                near = len(set(mention.left) & (tool.head_words | set(tool.name_words)))
                options.append((near, Read(tool, arguments)))
    options.sort(key=lambda pair: (-pair[0], pair[1].tool.name))
    return options[0][1] if options and options[0][0] else None


def producers(param: Param, nouns: frozenset[str], tools: list[Tool]) -> list[tuple[float, Tool]]:
    """Reading tools that seem to return the identifier, the most promising first."""
    found = []
    for tool in tools:
        if not tool.reads or any(p.name == param.name and p.required for p in tool.params):
            continue
        score = 0.0
        if param.name.lower() in tool.returns or param.name.lower().rstrip("s") in tool.returns:
            score += 2.0
        if speaks_of(frozenset(tool.name_words), nouns):
            score += 2.0
        elif speaks_of(tool.head_words, nouns):
            score += 1.0
        if any(f"{noun}_id" in tool.returns for noun in _fields_of(nouns, tool)):
            score += 2.0
        if score:
            found.append((score, tool))
    return sorted(found, key=lambda pair: (-pair[0], pair[1].name))


def _fields_of(nouns: frozenset[str], tool: Tool) -> list[str]:
    """Words before `_id` among the returned fields whose stem is one of the nouns."""
    heads = [f.removesuffix("_id") for f in tool.returns if f.endswith("_id")]
    return [head for head in heads if nouns & set(stems(plain(head))[-1:])]


def _next_page(param: Param, known: Known) -> Read | None:
    """The next page of the last result that named such identifiers and went on."""
    for call in reversed(known.calls):
        tool = next((t for t in known.tools if t.name == call.name), None)
        cursor = tool and next((p for p in tool.params if p.is_cursor), None)
        token = next_cursor(call) if cursor and not call.error else None
        if tool and cursor and token:
            if not speaks_of(frozenset(tool.name_words), param.nouns):
                continue
            read = Read(tool, (call.arguments or {}) | {cursor.name: token})
            if not known.tried(tool, read.arguments):
                return read
    return None


def _next_read(param: Param, path: tuple[Evidence, ...], known: Known) -> Read | None:
    evidence = path[-1]
    options: list[tuple[float, Read]] = []
    unexplained = evidence.unexplained
    for score, tool in producers(param, evidence.nouns, known.tools):
        for rank, read in enumerate(_reads_of(tool, path, known)):
            new = [m for m in unexplained if m.text in map(str, read.arguments.values())]
            used = 1.5 * len(new) + 0.5 * min(2, len(read.arguments))
            direct = 0.0 if read.tool.name == tool.name else -0.5
            options.append((score + used - rank + direct - 0.2 * len(path), read))
    options.sort(key=lambda pair: (-pair[0], pair[1].tool.name))
    return options[0][1] if options else None


def _reads_of(tool: Tool, path: tuple[Evidence, ...], known: Known) -> list[Read]:
    """The call of this tool that the words allow and its wider variants, or what it waits for."""
    evidence = path[-1]
    clues = known.words.only(path[0].clues)
    arguments = assign(tool, clues, lookup=True, prefer=evidence.weight).values
    arguments = {k: v for k, v in arguments.items() if v not in path[0].taken}
    said = set(map(str, arguments.values()))
    is_open = any(m.text not in said for m in evidence.unexplained)
    for param in tool.params:
        if param.name in arguments or not param.is_id:
            continue
        # an optional filter is worth a read only while some clue leads nowhere yet
        step = resolve(param, tool, known, {}, path=path, may_read=param.required or is_open)
        if isinstance(step, Value):
            arguments[param.name] = step.value
        elif isinstance(step, Read):
            return [step]
        elif param.required:
            return []
    for param in tool.required:
        if param.name not in arguments:
            standard = _standard(param, known)
            if standard is None:
                return []
            arguments[param.name] = standard
    variants = [arguments, *_wider(tool, arguments)]
    return [Read(tool, a) for a in variants if not known.tried(tool, a)]


def _standard(param: Param, known: Known) -> Any:
    """A value for a required argument that nobody named: its default, what an earlier call
    used, or a fixed value that some text near the wish makes likely."""
    if "default" in param.schema:
        return param.schema["default"]
    for call in reversed(known.calls):
        if not call.error and param.name in (call.arguments or {}):
            return (call.arguments or {})[param.name]
    if param.enum and len(param.enum) <= 3:
        said = stem_set(known.words.text)
        named = [value for value in param.enum if said & set(stems(str(value)))]
        return [*named, *param.enum][0]
    return None


def _wider(tool: Tool, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    """Fewer filters, for when all of them together find nothing."""
    needed = {p.name: arguments[p.name] for p in tool.required if p.name in arguments}
    optional = {k: v for k, v in arguments.items() if k not in needed}
    variants = [needed | {k: v} for k, v in optional.items()] if len(optional) > 1 else []
    return [*variants, needed] if optional else []
