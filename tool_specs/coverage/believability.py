"""Whether a catalogue of tools looks like those of real servers: figures of names and shapes."""

REAL = {
    "object_params": 0.030,
    "object_list_params": 0.0135,
    "enum_params": 0.048,
    "default_params": 0.22,
    "optional_params": 0.51,
    "without_params": 0.15,
}
