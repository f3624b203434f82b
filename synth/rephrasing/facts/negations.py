"""Words that deny, in the languages that texts are compared in by them."""

from collections.abc import Collection

_NEGATIONS = {
    "en": "not no never none nothing nobody neither nor cannot without hardly nowhere",
    "de": "nicht kein keine keinen keinem keiner keines nie niemals nichts niemand weder noch ohne"
    " kaum",
    "fr": "ne n pas jamais aucun aucune rien personne ni sans gu\u00e8re",
    "es": "no nunca jam\u00e1s ning\u00fan ninguno ninguna nada nadie ni sin tampoco apenas",
}
_IN = {language: frozenset(words.split()) for language, words in _NEGATIONS.items()}


def is_negation(word: str, language: str) -> bool:
    """Of a word in lower case; of a language without a list here no word denies."""
    return holds_negation((word,), language)


def holds_negation(words: Collection[str], language: str) -> bool:
    """Whether one of the words denies."""
    if not _IN.get(language, frozenset()).isdisjoint(words):
        return True
    return language == "en" and any(word.endswith(("n't", "n\u2019t")) for word in words)
