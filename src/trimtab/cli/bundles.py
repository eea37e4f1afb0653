"""The documents of several inputs as one bundle: Lists unpacked, inputs that cannot be read set aside."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import click

from trimtab.cli.documents import read_documents
from trimtab.cli.errors import one_line
from trimtab.cli.nodes import Document, DocumentError


@dataclass
class Bundle:
    """What was read, and whether all of it could be."""

    documents: list[Document] = field(default_factory=list)
    has_unreadable: bool = False


def read_bundle(sources: Sequence[str]) -> Bundle:
    """Read every input; one that cannot be read is reported on stderr and does not stop the others."""
    bundle = Bundle()
    for source in sources:
        try:
            documents = read_documents(source)
        except DocumentError as error:
            click.echo(one_line(str(error)), err=True)
            bundle.has_unreadable = True
            continue
        if not documents:
            click.echo(one_line(f"{source}: holds no documents"), err=True)
            bundle.has_unreadable = True
        for document in documents:
            bundle.documents.extend(unpacked(document))
    return bundle


def is_list(document: Document) -> bool:
    """Say whether a document is a List of others, as `kubectl get -o yaml` prints them."""
    data = document.data
    if not isinstance(data, dict) or not isinstance(data.get("items"), list):
        return False
    return isinstance(data.get("kind"), str) and data["kind"].endswith("List")


def unpacked(document: Document) -> Iterator[Document]:
    """Yield the items of a List, and of Lists in it, or the document itself."""
    if not is_list(document):
        yield document
        return
    for position in range(len(document.data["items"])):
        yield from unpacked(document.item("items", str(position)))
