"""From the text of a Prometheus sample to a quantity, or to the reason why it is refused (faults F34, F36, F38, F39)."""

from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation

from trimtab.model.quantity import Quantity

_LARGEST = Decimal(2**63 - 1)
"""What readers of the metrics APIs can hold; more would wrap around in some of them."""

_NANOS = Decimal(10**9)
FUTURE_SECONDS = 60.0


class RefusedValueError(ValueError):
    """A sample is not served; the message says why."""


def quantity_of(text: str) -> Quantity:
    """Return the exact value, down to billionths."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise RefusedValueError(f"{text!r} is not a number") from None
    if not number.is_finite():
        raise RefusedValueError(f"the value is {text}")
    if abs(number) > _LARGEST:
        raise RefusedValueError(f"the value {text} is beyond 2^63")
    return Quantity(int((number * _NANOS).to_integral_value()))


def time_of(unix_seconds: float, now: datetime, max_age: float) -> datetime:
    """Return when a sample was taken; refuse one that is too old, or from the future."""
    age = now.timestamp() - unix_seconds
    if age > max_age:
        raise RefusedValueError(f"the sample is {age:.0f} s old, more than {max_age:g} s")
    if age < -FUTURE_SECONDS:
        raise RefusedValueError(f"the sample is {-age:.0f} s ahead of our clock")
    return datetime.fromtimestamp(unix_seconds, UTC)
