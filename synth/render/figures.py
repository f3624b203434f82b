"""Numbers as reports show them; `-` stands for one that is not there."""


def number(value: float | int | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}".rstrip("0").rstrip(".")


def percent(part: float | None, whole: float | None) -> str:
    """A whole percentage; `-` where there is nothing to take a share of."""
    return f"{100 * part / whole:.0f}%" if part is not None and whole else "-"


def ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def usd(value: float | None) -> str:
    """Cents, and a hundredth of them for small sums."""
    if value is None:
        return "-"
    return f"${value:,.2f}" if value >= 0.1 or value == 0 else f"${value:.4f}"
