"""Formats log lines, as text or as JSON.

Names and messages come from objects of all users, so control characters are escaped (S19).
"""

import json
import logging
from datetime import UTC, datetime
from typing import Any

_PLAIN = {code: f"\\x{code:02x}" for code in (*range(32), 127)} | {
    ord(mark): f"\\u{ord(mark):04x}"
    for mark in "\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
}


class TextFormatter(logging.Formatter):
    """`2026-01-15T12:00:00Z INFO scaled hpa=shop/web from=2 to=4 reason="..."`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        moment = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        facts = "".join(f" {name}={_quoted(value)}" for name, value in _facts(record).items())
        line = f"{moment} {record.levelname} {_clean(record.getMessage())}{facts}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname,
            "message": record.getMessage(),
            "logger": record.name,
            **_facts(record),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


DETAILS = 5
"""The verbosity from which on details are logged, as in client-go."""


def set_up(form: str, *, verbosity: int = 4) -> None:
    """Send log lines to standard error: only warnings at verbosity 0, details from 5 on."""
    level = logging.WARNING if verbosity < 1 else logging.DEBUG if verbosity >= DETAILS else logging.INFO
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)


def _facts(record: logging.LogRecord) -> dict[str, Any]:
    facts = getattr(record, "facts", None)
    return facts if isinstance(facts, dict) else {}


def _clean(text: str) -> str:
    return text.translate(_PLAIN)


def _quoted(value: object) -> str:
    text = _clean(str(value))
    return json.dumps(text, ensure_ascii=False) if " " in text or '"' in text or not text else text
