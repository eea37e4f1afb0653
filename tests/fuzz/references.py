"""Second readings of the same texts, written from the specifications and independent of Trimtab's parsers."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import h11

_QUANTITY = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(.*)\Z", re.ASCII | re.DOTALL)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)\Z", re.ASCII)
_LARGEST_EXPONENT = 400
NANOS = 10**9


def quantity_nanos(text: str) -> int | None:
    """Return a quantity in nanos, rounded away from zero, or None where the text is none or too large for this reading."""
    match = _QUANTITY.match(text)
    if match is None:
        return None
    sign, whole, fraction, suffix = match[1], match[2], match[3] or "", match[4]
    if not whole and not fraction:
        return None
    number = Fraction(int(whole + fraction or "0"), 10 ** len(fraction))
    if suffix in _BINARY:
        number *= 1024 ** _BINARY[suffix]
        number = min(number, Fraction(2**63 - 1))
    elif suffix in _DECIMAL:
        number *= Fraction(10) ** _DECIMAL[suffix]
    elif (exponent := _EXPONENT.match(suffix)) and abs(int(exponent[1])) <= _LARGEST_EXPONENT:
        number *= Fraction(10) ** int(exponent[1])
    else:
        return None
    nanos = -(-number * NANOS // 1)
    return int(-nanos if sign == "-" else nanos)


@dataclass(frozen=True)
class HttpAnswer:
    """A whole answer."""

    status: int
    body: bytes


def http_answer(stream: bytes, method: str) -> HttpAnswer | str:
    """Return the answer that h11 reads from a connection that then ends, or why there is none."""
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=1 << 20)
    connection.send(h11.Request(method=method, target="/", headers=[("host", "x")]))
    connection.send(h11.EndOfMessage())
    status, body = 0, bytearray()
    try:
        connection.receive_data(stream)
        ended = False
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                if ended:
                    return "incomplete"
                ended = True
                connection.receive_data(b"")
            elif isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                return HttpAnswer(status, bytes(body))
            elif event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
                return "closed"
    except h11.RemoteProtocolError as error:
        return f"refused: {error}"


def selector_matches(
    requirements: Sequence[tuple[str, str, tuple[str, ...]]], labels: Mapping[str, str]
) -> bool:
    """Return whether labels meet requirements, by the table in Kubernetes' documentation of labels."""
    return all(_matches(*requirement, labels) for requirement in requirements)


def _matches(key: str, operator: str, values: tuple[str, ...], labels: Mapping[str, str]) -> bool:
    value = labels.get(key)
    if operator in {"in", "=", "=="}:
        return value in values
    if operator in {"notin", "!="}:
        return value not in values
    if operator == "exists":
        return value is not None
    if operator == "!":
        return value is None
    if (
        value is None
        or not re.fullmatch(r"[+-]?[0-9]+", value, re.ASCII)
        or not -(2**63) <= int(value) < 2**63
    ):
        return False
    return int(value) > int(values[0]) if operator == "gt" else int(value) < int(values[0])
