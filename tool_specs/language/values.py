"""What operators and functions do to values at run time. Nothing here raises but EvaluationError.

Null: comparisons with null are false but for == and !=, `contains` and `starts_with` likewise;
field access, date functions and `round` pass null on; sum, min and max skip it; arithmetic refuses
it. Booleans are not numbers: `true == 1` is false.
"""

from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from tool_specs.language.expressions import MAX_NUMBER

_NUMBERS = (int, float)
MAX_TEXT = 10_000
"""Characters of a text that a function builds."""


class EvaluationError(Exception):
    """A value that an operator or function does not take: the call fails, its state is undone."""


class OutOfRangeError(EvaluationError):
    """A value of the right kind beyond what a function takes, or gives: the arguments of the call
    are told as the reason (`invalid_arguments`), since what is stored has been checked."""


def show_value(value: Any) -> str:
    """A value as a message shows it, cut to a length that fits one."""
    text = f"'{value}'" if isinstance(value, str) else as_text(value) or "null"
    return text if len(text) <= 80 else text[:77] + "..."


def as_text(value: Any) -> str:
    """Null is empty, booleans are true and false, lists join with commas."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(as_text(v) for v in value)
    return str(value)


def in_range(number: Any) -> Any:
    """The number, an integral float as an integer; refuses what JSON readers disagree about."""
    if not -MAX_NUMBER <= number <= MAX_NUMBER:  # nan fails too
        raise EvaluationError(f"number out of range: at most {MAX_NUMBER} either way")
    if type(number) is float and number.is_integer():
        return int(number)
    return number


def _numbers(operator: str, a: Any, b: Any) -> None:
    for value in (a, b):
        if type(value) not in _NUMBERS:
            raise EvaluationError(f"{operator} needs numbers, got {show_value(value)}")


def add(a: Any, b: Any) -> Any:
    _numbers("+", a, b)
    return in_range(a + b)


def subtract(a: Any, b: Any) -> Any:
    _numbers("-", a, b)
    return in_range(a - b)


def multiply(a: Any, b: Any) -> Any:
    _numbers("*", a, b)
    return in_range(a * b)


def divide(a: Any, b: Any) -> Any:
    """An integer where it comes out even, so that 6 / 2 is 3."""
    _numbers("/", a, b)
    if b == 0:
        raise EvaluationError(f"division of {show_value(a)} by zero")
    return in_range(a / b)


def negate(a: Any) -> Any:
    if type(a) not in _NUMBERS:
        raise EvaluationError(f"- needs a number, got {show_value(a)}")
    return -a


def equal(a: Any, b: Any) -> bool:
    """JSON equality: 1 equals 1.0 and neither equals true."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(equal(v, b[k]) for k, v in a.items())
    return a == b


def ordered(a: Any, b: Any) -> bool:
    """Whether < may be asked: false with a null, refused between kinds."""
    if a is None or b is None:
        return False
    if type(a) is str and type(b) is str:
        return True
    if type(a) in _NUMBERS and type(b) in _NUMBERS:
        return True
    raise EvaluationError(f"cannot order {show_value(a)} and {show_value(b)}")


def is_in(a: Any, b: Any) -> bool:
    if b is None:
        return False
    if not isinstance(b, list):
        raise EvaluationError(f"in needs a list on its right, got {show_value(b)}")
    return any(equal(a, item) for item in b)


def contains(a: Any, b: Any) -> bool:
    """Text in text, or an element of a list, ignoring case."""
    if a is None or b is None:
        return False
    if isinstance(a, list):
        return any(equal(_folded(item), _folded(b)) for item in a)
    return text_of("contains", b).casefold() in text_of("contains", a).casefold()


def ends_with(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return False
    return text_of("ends_with", a).casefold().endswith(text_of("ends_with", b).casefold())


def starts_with(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return False
    return text_of("starts_with", a).casefold().startswith(text_of("starts_with", b).casefold())


def _folded(value: Any) -> Any:
    return value.casefold() if isinstance(value, str) else value


def text_of(operator: str, value: Any) -> str:
    if not isinstance(value, str):
        raise EvaluationError(f"{operator} needs text, got {show_value(value)}")
    return value


def truth(value: Any) -> bool:
    """Of a condition: null is false, other than booleans is refused."""
    if value is True:
        return True
    if value is False or value is None:
        return False
    raise EvaluationError(f"needs true or false, got {show_value(value)}")


def field_of(value: Any, field: str) -> Any:
    """Of an object, or of each element of a list; null of null."""
    if value is None:
        return None
    if isinstance(value, dict):
        return value.get(field)
    if isinstance(value, list):
        return [field_of(item, field) for item in value]
    raise EvaluationError(f"{show_value(value)} has no field {field}")


def elements(function: str, value: Any) -> list[Any]:
    """The list itself; null is an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise EvaluationError(f"{function} needs a list, got {show_value(value)}")
    return value


def count(value: Any) -> int:
    return len(elements("count", value))


def exists(value: Any) -> bool:
    """A list with elements, or anything else that is not null."""
    return bool(value) if isinstance(value, list) else value is not None


def total(value: Any) -> Any:
    result: Any = 0
    for item in elements("sum", value):
        if item is not None:
            _numbers("sum", item, 0)
            result += item
    return in_range(result)


def smallest(*arguments: Any) -> Any:
    return _extreme("min", arguments, smaller=True)


def largest(*arguments: Any) -> Any:
    return _extreme("max", arguments, smaller=False)


def _extreme(function: str, arguments: Sequence[Any], *, smaller: bool) -> Any:
    """Of one list, or of two and more values; null where nothing is left."""
    items = elements(function, arguments[0]) if len(arguments) == 1 else arguments
    best: Any = None
    for item in items:
        if item is None:
            continue
        if best is None:
            if type(item) not in (*_NUMBERS, str):
                raise EvaluationError(f"{function} needs numbers or text, got {show_value(item)}")
            best = item
        elif ordered(item, best) and (item < best if smaller else item > best):
            best = item
    return best


def round_half_up(value: Any, digits: Any = 0) -> Any:
    """Half away from zero, as bills are rounded; 0 digits give an integer."""
    if value is None:
        return None
    _numbers("round", value, digits)
    if type(digits) is not int or not 0 <= digits <= 9:
        raise OutOfRangeError(f"round takes 0 to 9 digits, got {show_value(digits)}")
    step = Decimal(1).scaleb(-digits)
    rounded = Decimal(repr(in_range(value))).quantize(step, ROUND_HALF_UP)
    return int(rounded) if digits == 0 else in_range(float(rounded))


def concat(*arguments: Any) -> str:
    return built("concat", "".join(map(as_text, arguments)))


def built(function: str, text: str) -> str:
    """The text, if it is not too long."""
    if len(text) > MAX_TEXT:
        raise OutOfRangeError(f"{function} built {len(text)} characters, at most {MAX_TEXT}")
    return text


def num_characters(value: Any) -> int:
    """Of all texts in it."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        value = value.values()
    return sum(map(num_characters, value)) if isinstance(value, Iterable) else 0


def coalesce(*arguments: Any) -> Any:
    return next((a for a in arguments if a is not None), None)


def date_of(value: Any) -> str | None:
    """The day of a date or date-time."""
    return None if value is None else _day("date", value).isoformat()


def _day(function: str, value: Any) -> date:
    try:
        return date.fromisoformat(text_of(function, value)[:10])
    except ValueError:
        raise EvaluationError(
            f"{function} needs a date such as 2026-03-02, got {show_value(value)}"
        ) from None


def days_between(first: Any, second: Any) -> int | None:
    """Days from the first to the second: negative when the second is earlier."""
    if first is None or second is None:
        return None
    return (_day("days_between", second) - _day("days_between", first)).days


def add_days(value: Any, days: Any) -> str | None:
    """A date stays a date; a date-time keeps its time of day."""
    if value is None or days is None:
        return None
    if type(days) is not int:
        raise EvaluationError(f"add_days needs whole days, got {show_value(days)}")
    try:
        moved = _day("add_days", value) + timedelta(days=days)
    except OverflowError:
        raise OutOfRangeError(f"add_days leaves the calendar with {days} days") from None
    return moved.isoformat() + value[10:]


def is_date(value: Any) -> bool:
    """A real day in the one spelling we store: YYYY-MM-DD."""
    if not isinstance(value, str) or len(value) != 10:
        return False
    try:
        return date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def is_datetime(value: Any) -> bool:
    """YYYY-MM-DDTHH:MM:SS, without zone: the episode has one clock."""
    if not isinstance(value, str) or len(value) != 19 or value[10] != "T":
        return False
    try:
        return datetime.fromisoformat(value).isoformat() == value
    except ValueError:
        return False
