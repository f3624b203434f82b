"""What models are asked in a probe."""

from typing import Any

WEATHER = [
    {
        "role": "user",
        "content": (
            "What is the weather in Lisbon right now? Call the tool get_weather to find out."
        ),
    }
]
TWO_CITIES = [
    {
        "role": "user",
        "content": "Compare the weather in Lisbon and in Oslo right now. Look both up at once.",
    }
]
HELLO = [{"role": "user", "content": "Say hello."}]
REPORT = [
    {"role": "system", "content": "You fill in forms. You write nothing else."},
    {"role": "user", "content": "It is 21 degrees in Lisbon, and the sky is clear."},
]

TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the current weather of a city. Returns city, sky and celsius.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Name of the city, such as Oslo."}
            },
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}

FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Name of the city."},
        "celsius": {"type": "integer", "description": "Its temperature now."},
        "rains": {"type": "boolean"},
    },
    "required": ["city", "celsius", "rains"],
    "additionalProperties": False,
}
