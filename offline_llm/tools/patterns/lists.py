"""Patterns that edit list fields: add, take out, replace, copy, in one row or several."""

from functools import partial

from offline_llm.tools.draft import Impossible, ToolDraft, label, member_of
from offline_llm.tools.english import singular
from offline_llm.tools.idea import Idea, Ideas, live_test, picked
from offline_llm.tools.logic import mentions
from offline_llm.tools.outline import Entity, Field, Outline


def ideas(o: Outline) -> Ideas:
    for e in o:
        for f in e.of("list"):
            for op in ("link", "unlink"):
                yield Idea(f"list_{op}", e.name, partial(_edit_list, o, e, f, op))
                yield Idea(f"list_{op}_many", e.name, partial(_edit_list_many, o, e, f, op))
            yield Idea("list_replace", e.name, partial(_replace_list, o, e, f))
            yield Idea("list_share", e.name, partial(_share_list, o, e, f))


def _item(o: Outline, d: ToolDraft, f: Field) -> str:
    """A parameter for one element of the list, and what reads it."""
    single = singular(f.noun)
    if f.of == "ref":
        held = o[f.to]
        d.row(held, d.id_of(held, name=f"{held.name}_id"))
        return f"{held.name}.{held.key}"
    if f.of != "string":
        raise Impossible
    return d.param(
        single,
        "string",
        f"One of the {f.words}, such as 'spare key' or 'window seat'",
        min=1,
        max=80,
    )


def _examples(known: list[str]) -> str:
    return " or ".join(repr(value) for value in dict.fromkeys(known[:6]))


def _edit_list(o: Outline, e: Entity, f: Field, op: str) -> ToolDraft:
    single = o[f.to].name if f.of == "ref" else singular(f.noun)
    verb, link = ("add", "to") if op == "link" else ("remove", "from")
    d = ToolDraft(o, f"{verb}_{single}_{link}_{e.name}", f"{verb} one of the {f.words} of {e.one}")
    if mentions(o, e, f.name) or f.to == e.name:
        raise Impossible
    row = d.row(e)
    item = _item(o, d, f)
    if op == "unlink" and f.of == "string":
        known = [
            v for r in e.sample for v in r.get(f.name) or () if isinstance(v, str) and "'" not in v
        ]
        if not known:
            raise Impossible
        d.params[item[5:]]["description"] = (
            f"One of the {f.words} that it has, such as {_examples(known)}."
        )
    inside = f"{item} in {row}.{f.name}"
    if op == "link":
        d.require(f"not ({inside})", "there_already", f"{{{item}}} is among the {f.words} already.")
    else:
        d.require(inside, f"no_such_{single}", f"{{{item}}} is not among the {f.words}.")
    d.step(op, target=row, field=f.name, to=item)
    return d.answer(
        **{
            e.key: f"{row}.{e.key}",
            f.name: f"{row}.{f.name}",
            "number_of": f"count({row}.{f.name})",
        }
    )


def _edit_list_many(o: Outline, e: Entity, f: Field, op: str) -> ToolDraft:
    if f.of not in ("string", "ref") or mentions(o, e, f.name) or f.to == e.name:
        raise Impossible
    verb, link = ("add", "to") if op == "link" else ("remove", "from")
    single = o[f.to].name if f.of == "ref" else singular(f.noun)
    d = ToolDraft(
        o,
        f"{verb}_{single}_{link}_several_{e.many}",
        f"{verb} one of the {f.words} {link} several {e.says} at once",
    )
    item = _item(o, d, f)
    ids = d.ids_of(e, 20)
    if op == "unlink" and f.of == "string":
        known = [
            v for r in e.sample for v in r.get(f.name) or () if isinstance(v, str) and "'" not in v
        ]
        if not known:
            raise Impossible
        d.params[item[5:]]["description"] = f"What to take out, such as {_examples(known)}."
    d.loop(ids, "wanted")
    d.row(e, "wanted")
    d.step(op, target=e.name, field=f.name, to=item)
    d.done()
    return d.answer(**{e.many: picked(e.name, [e.key, f.name])})


def _replace_list(o: Outline, e: Entity, f: Field) -> ToolDraft:
    if mentions(o, e, f.name) or f.to == e.name:
        raise Impossible
    member = member_of(o, f)
    d = ToolDraft(
        o, f"replace_{e.name}_{f.noun}", f"Replace the {f.words} of {e.one} by a new list"
    )
    row = d.row(e)
    d.params[f.name] = member | {
        "description": f"The whole new list of {f.words}, up to {member['max']}."
    }
    if live_test(e, e.name):
        d.in_status(e, row, e.live)
    d.update(e, row, {f.name: f"args.{f.name}"})
    return d.answer(
        **{
            e.key: f"{row}.{e.key}",
            f.name: f"{row}.{f.name}",
            "number_of": f"count({row}.{f.name})",
        }
    )


def _share_list(o: Outline, e: Entity, f: Field) -> ToolDraft:
    if mentions(o, e, f.name) or f.of == "object":
        raise Impossible
    d = ToolDraft(
        o, f"copy_{f.noun}_to_{e.name}", f"Give {e.one} the same {f.words} as another one"
    )
    model = d.row(
        e, d.id_of(e, f"{e.words} to copy them from", name=f"model_{e.key}"), bind="model"
    )
    row = d.row(e)
    d.require(
        f"{model}.{e.key} != {row}.{e.key}",
        f"same_{e.name}",
        f"Name two different {e.says}.",
        f"both ids name the same {e.words}",
    )
    d.update(e, row, {f.name: f"{model}.{f.name}"})
    return d.answer(
        **{e.name: label(o, e, row), f.name: f"{row}.{f.name}", "copied_from": label(o, e, model)}
    )
