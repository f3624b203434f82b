"""What a generator is asked to answer with: JSON Schemas of tools and of a narrower domain.

At most four objects deep and without recursion. The descriptions are for the model: together with
the prompt they are all that it knows of the form.
"""

from typing import Any

from tool_specs.language.statements import NAME

MAX_TOOLS = 40
"""Tools of one answer."""
MAX_PARAMS = 16
MAX_STATEMENTS = 40

SchemaDict = dict[str, Any]


def _text(description: str, longest: int = 600, **more: Any) -> SchemaDict:
    return {"type": "string", "maxLength": longest, "description": description} | more


def _name(description: str) -> SchemaDict:
    return {"type": "string", "pattern": NAME, "description": description}


def _list(items: SchemaDict, most: int, description: str, **more: Any) -> SchemaDict:
    return {"type": "array", "items": items, "maxItems": most, "description": description} | more


def _object(properties: SchemaDict, *required: str) -> SchemaDict:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _choice(description: str, *values: str) -> SchemaDict:
    return {"type": "string", "enum": list(values), "description": description}


_SCALARS = ("string", "integer", "number", "boolean", "date", "datetime", "enum")

_MEMBER = {
    "name": _name("Snake case."),
    "type": _choice("date is 2026-03-02, datetime is 2026-03-02T09:00:00.", *_SCALARS),
    "description": _text("What to give, with an example value.", 400),
    "optional": {"type": "boolean", "description": "true: may be left out, and is null then."},
    "values": _list(_text("", 100), 40, "Of an enum: what it may be."),
    "min": {"type": "number", "description": "Least number; of text the fewest characters."},
    "max": {"type": "number", "description": "Greatest number; of text the most characters."},
    "unit": _text("Of a number, such as USD, km, min.", 40),
    "ref": _text("Of a string that is an id: the entity whose id it is.", 64),
}

_PARAM = _MEMBER | {
    "type": _choice("As for values, and array or object.", *_SCALARS, "array", "object"),
    "default": {
        "type": ["string", "number", "boolean"],
        "description": "Value where an optional parameter is left out.",
    },
    "min": {"type": "number", "description": "Least number, fewest characters, fewest items."},
    "max": {"type": "number", "description": "Greatest number, most characters, most items."},
    "items": _choice(
        "Of an array: what it holds. ref: ids of the entity `ref`; enum: some of `values`; object: "
        "objects of `fields`.",
        *_SCALARS,
        "ref",
        "object",
    ),
    "fields": _list(
        _object(_MEMBER, "name", "type", "description"),
        12,
        "Members of an object, or of the objects of an array.",
    ),
}

_ENTRY = _object(
    {
        "name": _text("Field of the row; in a returned value also a path: totals.amount.", 200),
        "value": _text("Expression."),
    },
    "name",
    "value",
)

_STATEMENT = {
    "op": _choice(
        "The kind of statement.",
        "read",
        "require",
        "create",
        "update",
        "delete",
        "link",
        "unlink",
        "for_each",
        "let",
        "when",
        "return",
    ),
    "in": _text("Name (`as`) of the for_each or when whose body this statement belongs to.", 64),
    "entity": _text("read, create: the entity.", 64),
    "key": _text("read: expression of the id of one row; a missing row is the error not_found."),
    "where": _text("read: condition on rows, which stand under the entity's name."),
    "order_by": _list(_text("", 64), 4, "read with where: fields, with - in front descending."),
    "limit": _text("read with where: expression of the greatest number of rows."),
    "cursor": _text("read with where: expression of the cursor of the page before, or null."),
    "as": _text("read, create, for_each, let, when: the name by which what follows finds it.", 64),
    "be": _text("let: expression of the value that gets the name."),
    "that": _text("require: what must hold, else the call fails with `error`. when: condition."),
    "error": _text("require, read by key: error code, a snake case word.", 64),
    "message": _text("Words for people; {expression} is replaced by its value.", 300),
    "target": _text("update, delete, link, unlink: name of a row that was read or created.", 64),
    "set": _list(_ENTRY, 24, "create, update: fields and the expressions of their values."),
    "field": _text("link, unlink: the list field.", 64),
    "to": _text("link, unlink: expression of what is added or taken out."),
    "over": _text("for_each: expression of a list."),
    "value": _list(_ENTRY, 24, "return: the members of the answer."),
}

_TOOL = {
    "name": _name("Verb first, snake case, no digit at the end."),
    "description": _text(
        "What it does in the imperative, then what it returns.", 1000, minLength=10
    ),
    "parent": _text("Name of the parent it was made from, else empty.", 64),
    "params": _list(_object(_PARAM, "name", "type", "description"), MAX_PARAMS, "Parameters."),
    "semantics": _list(_object(_STATEMENT, "op"), MAX_STATEMENTS, "Statements.", minItems=1),
}

TOOLS: SchemaDict = _object(
    {"tools": _list(_object(_TOOL, *_TOOL), MAX_TOOLS, "The tools.")}, "tools"
)
"""Answer named `tools`."""

_DURATION = {
    "takes": _text("What passes once a call has run: 90 seconds, or minutes: args.minutes.", 200),
    "waits": _text("The same of a tool that lets time pass first, and then says how things are."),
}

TOOLS_IN_TIME: SchemaDict = _object(
    {"tools": _list(_object(_TOOL | _DURATION, *_TOOL), MAX_TOOLS, "The tools.")}, "tools"
)
"""The same, where calls may take time."""

MAX_JOBS = 8

_JOB = {
    "name": _name("What happens, snake case, such as battery_charges."),
    "text": _text("One sentence that says what happens and when.", 300, minLength=10),
    "entity": _text("Entity whose rows fall due.", 64),
    "fields": _list(
        _object(
            {
                "name": _name("Snake case, not taken yet, such as ready_at."),
                "description": _text("Which moment it holds.", 200),
                "value": _text(
                    "Expression of the moment in the rows there are, over the row under its "
                    "entity's name; null where there is none, never before now."
                ),
            },
            "name",
            "description",
            "value",
        ),
        3,
        "Date-time fields, null or a moment, that the entity lacks.",
    ),
    "where": _text("Condition: which rows fall due. The row stands under its entity's name."),
    "due": _text("Expression: the moment, a date-time, or null."),
    "do": _list(_object(_STATEMENT, "op"), 20, "Statements, the last no return.", minItems=1),
}

JOBS: SchemaDict = _object({"jobs": _list(_object(_JOB, *_JOB), MAX_JOBS, "The jobs.")}, "jobs")
"""Answer named `jobs`."""

DOMAIN: SchemaDict = _object(
    {
        "domain": _name("Name of the narrower domain, no digit at the end."),
        "title": _text("Title of the narrower domain.", 80, minLength=3),
        "description": _text("Who uses it and for what, in one or two sentences.", 500),
        "fix": _list(
            _object(
                {
                    "entity": _text("Entity.", 64),
                    "field": _text("Its enum, boolean or ref field.", 64),
                    "value": _text("Expression of the one value that is left, such as 'urgent'."),
                },
                "entity",
                "field",
                "value",
            ),
            4,
            "Rows with another value do not exist in the narrower domain, nor rows that refer to "
            "them.",
        ),
        "add_fields": _list(
            _object(
                {
                    "entity": _text("Entity.", 64),
                    "name": _name("Snake case, not taken yet."),
                    "type": _choice("Type of the field.", *_SCALARS),
                    "description": _text("What it says.", 200),
                    "values": _list(_text("", 100), 12, "Of an enum."),
                    "unit": _text("Of a number.", 40),
                    "optional": {"type": "boolean", "description": "true: may be null."},
                    "value": _text(
                        "Expression of the value in the rows there are, over the row under its "
                        "entity's name; it should differ between rows."
                    ),
                },
                "entity",
                "name",
                "type",
                "description",
                "value",
            ),
            6,
            "Fields that only the narrower domain needs.",
        ),
        "rules": _list(
            _object(
                {
                    "id": _name("Snake case."),
                    "entity": _text("Entity whose rows it is about.", 64),
                    "that": _text("Condition on the row, under the entity's name."),
                    "text": _text("The rule in words.", 300),
                },
                "id",
                "entity",
                "that",
                "text",
            ),
            6,
            "What holds for every row, always; the rows that are left must conform.",
        ),
    },
    "domain",
    "title",
    "description",
    "fix",
    "add_fields",
    "rules",
)
"""Answer named `domain`, to the operator specialise."""
