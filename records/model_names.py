"""What the offline model and its forms are called in requests, and what they were called before."""

OFFLINE_MODEL = "offline-model"

EARLIER = {OFFLINE_MODEL + form: "template-policy" + form for form in ("", "-exact", "-clumsy")}
"""Name -> earlier name. The server answers to both for one version. Digests (ids of rows, keys of
journals, draws of answers) are made from the earlier ones, so that they are those of datasets that
exist."""

_TODAY = {earlier: name for name, earlier in EARLIER.items()}


def todays(model: str) -> str:
    """The model's name, where an earlier one may be given."""
    return _TODAY.get(model, model)


def in_digests(model: str) -> str:
    """The name that digests are made from."""
    return EARLIER.get(model, model)
