"""Numbers as the page shows them: the same everywhere, a dash where there is none."""

from __future__ import annotations

from decimal import Decimal

NONE = "–"
_THOUSAND = 1000
_MINUTE = 60


def render_score(value: float | Decimal | None) -> str:
    """Render a score with two digits."""
    return NONE if value is None else f"{value:.2f}"


def render_chance(value: float | None) -> str:
    """Render a p-value: hardly any is not none."""
    least = 0.01
    return f"< {least:.2f}" if value is not None and value < least else render_score(value)


def render_mean(value: float | None, places: int = 1) -> str:
    """Render a mean of counts."""
    return NONE if value is None else f"{value:.{places}f}"


def render_share(value: float | None) -> str:
    """Render a share as a percentage."""
    return NONE if value is None else f"{value * 100:.0f} %"


def render_count(value: int | None) -> str:
    """Render a count with commas between thousands."""
    return NONE if value is None else f"{value:,}"


def render_usd(value: Decimal | None) -> str:
    """Render an amount: cents, or where it is less than one, all digits that matter."""
    if value is None:
        return NONE
    cent = Decimal("0.01")
    return f"{value:.2f}" if value == 0 or value >= cent else f"{value:.2g}"


def render_bytes(value: int) -> str:
    """Render a size."""
    if value < _THOUSAND:
        return f"{value} B"
    return f"{value / 1e3:.1f} kB" if value < _THOUSAND**2 else f"{value / 1e6:.1f} MB"


def render_milliseconds(value: float | None) -> str:
    """Render a short time."""
    if value is None:
        return NONE
    return f"{value:.0f} ms" if value < _THOUSAND else f"{value / 1e3:.2f} s"


def render_duration(seconds: float | None) -> str:
    """Render a time."""
    if seconds is None:
        return NONE
    if seconds < _MINUTE:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), _MINUTE)
    hours, minutes = divmod(minutes, _MINUTE)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
