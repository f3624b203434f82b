"""Pydantic models of a domain file: entities, seed rows, policy and tools, as people write them.

A `DomainFile` is well formed; only `Domain` (domain.py) is also consistent: its expressions
typed, its references resolved, its seed conforming.
"""

from typing import Any, Literal

from pydantic import Field, model_validator

from tool_specs.language.jobs import Duration, JobSpec, seconds_in
from tool_specs.language.lifecycles import Invariant, Lifecycle
from tool_specs.language.statements import AnyStatement, Expr, Identifier, Spec
from tool_specs.language.types import Type, list_of, nullable
from tool_specs.language.values import is_datetime

CATEGORIES = (
    "enterprise_business_intelligence",
    "transportation_logistics",
    "iphone_android",
    "smart_home",
    "real_estate_property",
    "software_apps",
    "legal_compliance",
    "education_elearning",
    "robot_control",
    "agriculture_environmental",
    "healthcare_medical",
    "manufacturing_industrial_iot",
    "desktop_systems",
    "financial_trading",
    "website_control",
    "gaming_entertainment",
)
"""The sixteen named categories of the K2 report's figure 9."""

MAX_ITEMS = 50
"""Elements of an array argument where its spec names no maximum."""

_TEXT_LENGTH = 2000
"""Characters of a string argument where its spec names no maximum."""


TextLike = Literal[
    "person", "email", "phone", "town", "address", "code", "slug", "note", "title", "category"
]
"""What the texts of a field are like. Of a `category` there are those of the seed and no others."""


class FieldSpec(Spec):
    type: Literal[
        "string",
        "integer",
        "number",
        "boolean",
        "date",
        "datetime",
        "enum",
        "ref",
        "list",
        "object",
    ]
    optional: bool = False
    """May be null."""
    description: str | None = None
    unit: str | None = None
    verb: Identifier | None = None
    """What changing the field is called, such as `reschedule`."""
    values: tuple[str, ...] = ()
    min: float | int | None = None
    max: float | int | None = None
    to: str | None = None
    """Entity that a ref, or each ref of a list, points at."""
    of: Literal["string", "integer", "number", "boolean", "date", "datetime", "ref", "object"] = (
        "string"
    )
    properties: dict[Identifier, "FieldSpec"] | None = None
    """Of an object, or of the objects of a list, where their shape is fixed."""
    like: TextLike | None = None
    """What texts of the field are made like where the seed grows; None: like those of the seed."""

    @model_validator(mode="after")
    def _consistent(self) -> "FieldSpec":
        refers = self.type == "ref" or (self.type == "list" and self.of == "ref")
        holds = self.type == "object" or (self.type == "list" and self.of == "object")
        _need(
            bool(self.values) == (self.type == "enum"),
            "values belong to type enum, and it needs them",
        )
        _need(len(set(self.values)) == len(self.values), "values repeat")
        _need(
            (self.to is not None) == refers,
            "to belongs to type ref (or list of ref), which needs it",
        )
        _need("of" not in self.model_fields_set or self.type == "list", "of belongs to type list")
        _need(self.properties is None or holds, "properties belong to type object or a list of it")
        bounded = self.type in ("integer", "number", "string", "list")
        _need((self.min is None and self.max is None) or bounded, f"{self.type} has no min or max")
        _need(self.unit is None or self.type in ("integer", "number"), "unit belongs to numbers")
        _need(self.like is None or self.type == "string", "like belongs to type string")
        return self

    def as_type(self) -> Type:
        """The static type of the field's values."""
        type_ = list_of(self._type_of(self.of)) if self.type == "list" else self._type_of(self.type)
        return nullable(type_) if self.optional else type_

    def _type_of(self, kind: str) -> Type:
        if kind == "object":
            if self.properties is None:
                return Type("object")
            return Type("object", fields={n: f.as_type() for n, f in self.properties.items()})
        return Type(kind, entity=self.to, values=tuple(self.values) if kind == "enum" else ())


class EntitySpec(Spec):
    key: Identifier
    prefix: str | None = Field(
        default=None, pattern=r"^[A-Za-z][A-Za-z0-9_]*-?$|^[A-Za-z]+[-_:/#]$"
    )
    """Ids made by create are the prefix and the next number. None: create must set the key."""
    natural: tuple[str, ...] = ()
    """Fields by which people refer to a row; together they single out a row of the seed."""
    description: str | None = None
    fields: dict[Identifier, FieldSpec]
    lifecycle: Lifecycle | None = None

    @model_validator(mode="after")
    def _consistent(self) -> "EntitySpec":
        key = self.fields.get(self.key)
        _need(key is not None, f"key {self.key!r} is not one of the fields")
        _need(key is not None and key.type == "string" and not key.optional, "the key is a string")
        missing = [f for f in self.natural if f not in self.fields]
        _need(not missing, f"natural names {missing}, which are not fields")
        return self

    @property
    def lifecycle_field(self) -> str | None:
        return None if self.lifecycle is None else self.lifecycle.field

    def as_type(self, name: str) -> Type:
        """The static type of a row."""
        fields = {n: f.as_type() for n, f in self.fields.items()}
        return Type("row", entity=name, fields=fields)


class ParamSpec(Spec):
    type: Literal[
        "string", "integer", "number", "boolean", "date", "datetime", "enum", "array", "object"
    ]
    description: str | None = None
    optional: bool = False
    default: Any = None
    unit: str | None = None
    values: tuple[str, ...] = ()
    min: float | int | None = None
    """Least number, fewest characters of text, or fewest items of an array."""
    max: float | int | None = None
    ref: str | None = None
    """Entity whose id the text is; the tool decides what an unknown id means."""
    items: "ParamSpec | None" = None
    properties: dict[Identifier, "ParamSpec"] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> "ParamSpec":
        _need(
            bool(self.values) == (self.type == "enum"),
            "values belong to type enum, and it needs them",
        )
        _need(len(set(self.values)) == len(self.values), "values repeat")
        _need(self.ref is None or self.type == "string", "ref belongs to type string")
        _need(
            (self.items is not None) == (self.type == "array"),
            "items belong to type array, which needs them",
        )
        _need(
            (self.properties is not None) == (self.type == "object"),
            "properties belong to type object, which needs them",
        )
        bounded = self.type in ("integer", "number", "string", "array")
        _need((self.min is None and self.max is None) or bounded, f"{self.type} has no min or max")
        _need(self.unit is None or self.type in ("integer", "number"), "unit belongs to numbers")
        _need(
            self.default is None or self.optional,
            "a default makes a parameter optional; say optional: true",
        )
        return self

    def as_type(self) -> Type:
        """The static type of the argument inside the tool, where defaults are filled in."""
        match self.type:
            case "array":
                type_ = list_of(self.items.as_type() if self.items else None)
            case "object":
                fields = {n: p.as_type() for n, p in (self.properties or {}).items()}
                type_ = Type("object", fields=fields)
            case "enum":
                type_ = Type("enum", values=tuple(self.values))
            case _:
                type_ = Type("ref", entity=self.ref) if self.ref else Type(self.type)
        return nullable(type_) if self.optional and self.default is None else type_

    def json_schema(self) -> dict[str, Any]:
        """What a model is shown and arguments are validated against."""
        schema = self._shape()
        words = self.description
        if self.unit and self.unit not in (words or ""):
            words = f"{words} Unit: {self.unit}." if words else f"Unit: {self.unit}."
        if words:
            schema["description"] = words
        if self.default is not None:
            schema["default"] = self.default
        return schema

    def _shape(self) -> dict[str, Any]:
        match self.type:
            case "integer" | "number":
                return {"type": self.type} | self._bounds("minimum", "maximum")
            case "boolean":
                return {"type": "boolean"}
            case "enum":
                return {"type": "string", "enum": list(self.values)}
            case "date":
                return {"type": "string", "format": "date"}
            case "datetime":
                return {"type": "string", "pattern": _DATETIME_PATTERN}
            case "array":
                items = self.items.json_schema() if self.items else {}
                bounds = {"maxItems": MAX_ITEMS} | self._bounds("minItems", "maxItems")
                return {"type": "array", "items": items} | bounds
            case "object":
                return object_schema(self.properties or {})
        return (
            {"type": "string"}
            | {"maxLength": _TEXT_LENGTH}
            | self._bounds("minLength", "maxLength")
        )

    def _bounds(self, least: str, most: str) -> dict[str, Any]:
        return {n: v for n, v in ((least, self.min), (most, self.max)) if v is not None}


_DATETIME_PATTERN = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}$"


def object_schema(properties: dict[str, ParamSpec]) -> dict[str, Any]:
    """Schema of an object with these members and no others."""
    return {
        "type": "object",
        "properties": {name: spec.json_schema() for name, spec in properties.items()},
        "required": [name for name, spec in properties.items() if not spec.optional],
        "additionalProperties": False,
    }


class ToolSpec(Spec):
    name: Identifier
    description: str = Field(min_length=10, max_length=1000)
    params: dict[Identifier, ParamSpec] = Field(default_factory=dict)
    semantics: list[AnyStatement] = Field(min_length=1, max_length=40)
    takes: Expr | None = None
    """What passes once a call has run: `90 seconds`, or an expression of its arguments, in
    minutes."""
    waits: Expr | None = None
    """The same of a tool that lets time pass first, and runs then to say how things stand."""

    @model_validator(mode="after")
    def _one_duration(self) -> "ToolSpec":
        _need(self.takes is None or self.waits is None, "give takes or waits, not both")
        return self

    def input_schema(self) -> dict[str, Any]:
        return object_schema(self.params)


class PolicyRule(Spec):
    """A rule that the agent must follow and the tools do not enforce."""

    id: Identifier
    text: str = Field(min_length=10)
    tool: str | None = None
    """A call of this tool breaches the rule when `forbids` holds just before it. None: the rule
    is for the judge alone."""
    forbids: Expr = "true"


class DomainFile(Spec):
    domain: Identifier
    title: str
    category: Literal[CATEGORIES]  # type: ignore[valid-type]
    description: str
    split: Literal["train", "heldout_domain"] = "train"
    now: str
    """The clock at the start of every episode. Only what the file declares moves it."""
    entities: dict[Identifier, EntitySpec] = Field(min_length=1)
    rules: tuple[Invariant, ...] = ()
    jobs: tuple[JobSpec, ...] = ()
    """What changes by itself when it falls due; by name where several are due at once."""
    user_turn: Duration | None = None
    """What passes while the user answers; nothing where it is left out."""
    slack: Duration = "30 minutes"
    """Where time passes: how much longer than the reference plan an agent may take in all."""
    seed: dict[str, list[dict[str, Any]]]
    """Rows as objects; a file may write a row as a list of values in the order of the fields."""
    policy: tuple[PolicyRule, ...] = ()
    tools: list[ToolSpec] = Field(default_factory=list)
    """None in a taxonomy's domain, whose tools are evolved from it."""
    user_tools: tuple[Identifier, ...] = ()
    """Tools that only the person served can use, such as one that restarts a device at home. No
    agent gets them; a simulated user may."""

    @model_validator(mode="before")
    @classmethod
    def _rows_as_objects(cls, data: Any) -> Any:
        if not isinstance(data, dict) or not isinstance(data.get("seed"), dict):
            return data
        seed = {
            name: _as_objects(name, rows, _field_names(data, name))
            for name, rows in data["seed"].items()
        }
        return {**data, "seed": seed}

    @model_validator(mode="after")
    def _consistent(self) -> "DomainFile":
        _need(is_datetime(self.now), f"now must look like 2026-03-02T09:00:00, got {self.now!r}")
        for what, names in (
            ("tools", [t.name for t in self.tools]),
            ("policy", [p.id for p in self.policy]),
            ("rules", [r.id for r in self.rules]),
            ("jobs", [j.name for j in self.jobs]),
        ):
            twice = sorted({n for n in names if names.count(n) > 1})
            _need(not twice, f"{what} repeat {', '.join(twice)}")
        shortest = self.user_turn or "0 seconds"
        enough = (seconds_in(self.slack) or 0) >= (seconds_in(shortest) or 0)
        _need(enough, f"slack {self.slack!r} is less than the user_turn {shortest!r}")
        tools = {tool.name for tool in self.tools}
        unknown = [name for name in self.user_tools if name not in tools]
        _need(not unknown, f"user_tools names {unknown}, which are not tools")
        shared = set(self.user_tools) == tools and bool(tools)
        _need(not shared, "user_tools names every tool; the agent needs some")
        users = [p.id for p in self.policy if p.tool in self.user_tools]
        _need(not users, f"policy {users} forbids calls of user_tools; rules bind the agent alone")
        return self


def _field_names(data: dict[str, Any], entity: str) -> list[str]:
    """Of an entity of a file that is not checked yet."""
    try:
        return list(data["entities"][entity]["fields"])
    except (KeyError, TypeError):
        return []  # reported by the checks that follow


def _as_objects(entity: str, rows: Any, fields: list[str]) -> Any:
    if not isinstance(rows, list) or not fields:
        return rows
    for i, row in enumerate(rows):
        wrong = isinstance(row, list) and len(row) != len(fields)
        _need(
            not wrong,
            f"seed.{entity}[{i}] has {len(row) if wrong else 0} values; "
            f"fields: {', '.join(fields)}",
        )
    return [dict(zip(fields, row, strict=True)) if isinstance(row, list) else row for row in rows]


def _need(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(message)
