"""Reads the manifests that a command line names."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import click

from trimtab.cli.errors import one_line
from trimtab.library.documents import read_documents, unpacked
from trimtab.library.yaml_nodes import Document, DocumentError


@dataclass
class Bundle:
    """The documents that were read, and whether all inputs could be read."""

    documents: list[Document] = field(default_factory=list)
    has_unreadable: bool = False


def read_bundle(sources: Sequence[str]) -> Bundle:
    """Read all inputs. An unreadable input is reported on stderr, and reading goes on."""
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
