"""Every list and watch of a program names the namespaces it is about (N2, N3, RV-H1, RV-H5).

`watchNamespaces` binds the rights in some namespaces only. A list or watch without a namespace is forbidden there, and
what it was for is silently off. This reads the calls of the client in the source. `tests/support/transport.py` refuses
the same requests while programs run.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import trimtab
from trimtab.cluster.cache.informer import Informer
from trimtab.cluster.cache.shared import InformerFactory, NamespacedInformer
from trimtab.cluster.client import ListOptions

ROOT = Path(trimtab.__file__).parent
# By the classes themselves, so that a rename cannot make this test blind.
WATCHERS = {Informer.__name__: 2, NamespacedInformer.__name__: 2, InformerFactory.__name__: 1}
"""Classes that list and watch, with the position of their namespaces."""
OPTIONS = ListOptions.__name__
PROGRAMS = ("operator", "adapter", "dashboard", "cli", "metrics")
"""The packages whose requests go to a user's cluster; `cluster` holds the calls themselves."""


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call, int]]:
    """Yield the client's listing calls by name, with the position of their selection."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        match node.func:
            case ast.Attribute(attr="list" | "pages" as name, value=receiver) if is_client(receiver):
                yield name, node, 1
            case ast.Name(id=name) | ast.Subscript(value=ast.Name(id=name)) if name in WATCHERS:
                yield name, node, WATCHERS[name]


def is_client(receiver: ast.expr) -> bool:
    """Return whether an expression is a client, or makes one, by its name."""
    while isinstance(receiver, ast.Call):
        receiver = receiver.func
    return "client" in ast.unparse(receiver).rpartition(".")[2]


def selection_of(call: ast.Call, position: int) -> ast.expr | None:
    """Return what the call says about namespaces."""
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    found = named.get("selection") or named.get("options") or named.get("namespaces")
    return found or (call.args[position] if len(call.args) > position else None)


def names_a_namespace(selection: ast.expr | None, assigned: dict[str, ast.expr]) -> bool:
    """Return whether a selection is written with a namespace; a variable is looked up in its module."""
    if isinstance(selection, ast.Name) and selection.id in assigned:
        return names_a_namespace(assigned[selection.id], assigned)
    match selection:
        case None | ast.Constant() | ast.Name(id="EVERYTHING"):
            return False
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name == OPTIONS:
            namespace = next((keyword.value for keyword in keywords if keyword.arg == "namespace"), None)
            first = args[0] if args else namespace
            return first is not None and not isinstance(first, ast.Constant)
        case ast.Tuple(elts=elements):
            return bool(elements)
    return True


BY_THE_USER = {
    "cli/explain/hpas.py: list(resource)",
}
"""Lists with the user's own rights. `explain` looks for a name that was not found, where a refusal gives no hint, and `shards`
divides the whole cluster.
"""

BY_A_SHARD = {
    "operator/vertical/recommender/checkpoint_collector.py: pages(self._kind.vpas.into(PartialObject))"
}
"""Whether any shard has a VPA is asked only if all namespaces are watched, by all replicas together."""


def without_namespace(source: str) -> list[str]:
    """Return the calls of a module that name no namespace."""
    tree = ast.parse(source)
    assigned = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found = []
    for name, call, position in calls(tree):
        if not names_a_namespace(selection_of(call, position), assigned):
            what = ast.unparse(call.args[position - 1]) if len(call.args) >= position else "?"
            found.append(f"{name}({what})")
    return found


def test_no_program_lists_or_watches_without_its_namespaces():
    found = {
        f"{path.relative_to(ROOT)}: {call}"
        for package in PROGRAMS
        for path in sorted((ROOT / package).rglob("*.py"))
        # The stories of `trimtab up` are the administrator of a cluster of their own.
        if path.parent.name != "stories"
        for call in without_namespace(path.read_text())
    }
    assert found == BY_THE_USER | BY_A_SHARD


@pytest.mark.parametrize(
    ("source", "want"),
    [
        ("await self._client.list(HPAS)", ["list(HPAS)"]),
        ("await client.list(HPAS, ListOptions())", ["list(HPAS)"]),
        ("await client.list(HPAS, ListOptions(labels='app=web'))", ["list(HPAS)"]),
        ("await client.list(HPAS, ListOptions(None))", ["list(HPAS)"]),
        ("await client.list(HPAS, EVERYTHING)", ["list(HPAS)"]),
        ("await self._client_for(key).list(HPAS)", ["list(HPAS)"]),
        ("client.pages(HPAS, limit=5)", ["pages(HPAS)"]),
        ("Informer(client, PODS)", ["Informer(PODS)"]),
        ("Informer(client, PODS, ListOptions(fields='reason=Evicted'))", ["Informer(PODS)"]),
        ("selection = ListOptions(fields='a=b')\nInformer(client, PODS, selection)", ["Informer(PODS)"]),
        ("selection = ListOptions(NAMESPACE, fields='a=b')\nInformer(client, PODS, selection)", []),
        ("InformerFactory(client)", ["InformerFactory(client)"]),
        ("InformerFactory(client, ())", ["InformerFactory(client)"]),
        ("InformerFactory(client, settings.watch_namespaces)", []),
        ("client.list(HPAS, ListOptions(namespace or None))", []),
        ("client.list(HPAS, ListOptions(namespace=namespace))", []),
        ("names.list(HPAS)", []),
    ],
)
def test_the_guard_knows_the_calls(source, want):
    assert without_namespace(source) == want
