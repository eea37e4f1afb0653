"""Reads manifests from files and standard input, as YAML or JSON documents, and writes YAML.

Scalars mean what they mean to kubectl. YAML 1.1 words such as `yes` and `on` are booleans, a time or a sexagesimal
number is text, and keys are always text. Tags never construct objects. Sizes, depth, aliases and their expansion are
bounded, so that every input ends in documents or in a `DocumentError`.
"""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import yaml

from trimtab.library.yaml_nodes import Document, DocumentError, Place, compose

MAX_BYTES = 10 * 1024 * 1024
"""Maximum size of an input in bytes, three times the limit of an API server's request."""

STDIN = "-"

# Matches every escape, so that an escaped backslash before `ud83d` is not taken for half of another.
_ESCAPE = re.compile(r"\\(?:(u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|.)")


def read_documents(source: str) -> list[Document]:
    """Return the non-empty documents of a file, or of standard input for `-`."""
    name = "<stdin>" if source == STDIN else source
    return list(parse_documents(_text_of(source, name), name))


def parse_documents(text: str, name: str) -> Iterator[Document]:
    """Yield the non-empty documents of a YAML or JSON text."""
    text = _as_yaml(text)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        for document in compose(yaml.parse(text, Loader=loader), name):
            if document.data is not None:
                yield document
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = ", ".join(part for part in (error.problem, error.context) if part)
        raise DocumentError(
            Place(name, mark.line + 1 if mark else 1), f"not valid YAML: {problem}"
        ) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise DocumentError(
            Place(name, line), f"not valid YAML: character {error.character!r} is not allowed"
        ) from error
    except yaml.YAMLError as error:
        raise DocumentError(Place(name, 1), f"not valid YAML: {error}") from error


def _text_of(source: str, name: str) -> str:
    try:
        if source == STDIN:
            raw = _limited(sys.stdin.buffer)
        else:
            with Path(source).open("rb") as file:
                raw = _limited(file)
    except IsADirectoryError as error:
        raise DocumentError(Place(name), "is a directory; name the files in it") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise DocumentError(Place(name), f"cannot be read: {reason}") from error
    if len(raw) > MAX_BYTES:
        raise DocumentError(
            Place(name), f"is larger than {MAX_BYTES // 1024**2} MiB; split it into several files"
        )
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DocumentError(Place(name, line), f"is not UTF-8 text: byte 0x{raw[error.start]:02x}") from error


def _limited(file: IO[bytes]) -> bytes:
    """Read at most one byte more than the limit, so that reading an endless input ends."""
    return file.read(MAX_BYTES + 1)


def _as_yaml(text: str) -> str:
    """Return JSON in a form that YAML accepts: blanks for tabs, characters for escaped surrogate pairs.

    Strings of valid JSON contain no unescaped tab, so values do not change.
    """
    is_special = "\t" in text or "\\u" in text
    if not is_special or text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text
    return _ESCAPE.sub(_joined, text.replace("\t", " "))


def _joined(escape: re.Match[str]) -> str:
    return str(json.loads(f'"{escape[0]}"')) if escape[1] else escape[0]


def is_list(document: Document) -> bool:
    """Return whether a document is a List, as `kubectl get -o yaml` prints it."""
    data = document.data
    if not isinstance(data, dict) or not isinstance(data.get("items"), list):
        return False
    return isinstance(data.get("kind"), str) and data["kind"].endswith("List")


def unpacked(document: Document) -> Iterator[Document]:
    """Yield the items of a List and of nested Lists, or the document itself."""
    if not is_list(document):
        yield document
        return
    for position in range(len(document.data["items"])):
        yield from unpacked(document.item("items", str(position)))


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # which of the two is known at run time
    """A YAML dumper that indents lists like kubectl and writes no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def to_yaml(data: Any) -> str:
    """Return a document as YAML. Keys keep their order."""
    return to_yaml_stream([data])


def to_yaml_stream(documents: Sequence[Any]) -> str:
    """Return several documents as YAML, separated by `---`."""
    return str(
        yaml.dump_all(
            documents,
            Dumper=_Dumper,
            sort_keys=False,
            allow_unicode=True,
            width=1000,
            explicit_start=len(documents) > 1,
        )
    )
