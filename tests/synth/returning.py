"""The clinic's task over two conversations: what is given in the first is wanted in the second."""

from records.tables.schemas import Row
from tests.synth.clinic import TASK

SITUATION = "You travel in March."
COMES_BACK = "Hello again. Now is the time to cancel it, for the reason that I gave you."
BRIEF: Row = {
    "person": "Ingrid Solheim",
    "relation": "the patient herself",
    "situation": SITUATION,
    "opening": "Which slots has Mei Tanaka?",
    "wishes": [
        "Please list the free slots of the doctor Mei Tanaka.",
        "Keep it for later that I cannot come because of travel.",
        "Cancel my booked appointment for the reason that I gave you.",
    ],
    "facts": [
        {"label": "doctor", "value": "Mei Tanaka", "when": "opening", "goal": 0},
        {"label": "reason", "value": "travel", "when": "opening", "goal": 1},
        {"label": "name", "value": "Ingrid Solheim", "when": "opening", "goal": 2},
    ],
    "sessions": [
        {"situation": SITUATION, "opening": "Which slots has Mei Tanaka?", "wishes": 2, "keeps": 1},
        {"situation": "You come back.", "opening": COMES_BACK, "wishes": 1, "keeps": 0},
    ],
}
SEVERAL: Row = TASK | {"user_brief": BRIEF}
