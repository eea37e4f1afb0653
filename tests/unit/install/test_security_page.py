"""SECURITY.md lists the rights that the installation gives, to the last verb."""

import os
import re
from pathlib import Path

import pytest

from trimtab.install import manifests, set_values

PAGE = Path(__file__).parents[3] / "SECURITY.md"
BEGIN, END = "<!-- rights: tests/unit/install/test_security_page.py -->\n", "<!-- end of rights -->\n"
VALUES = ["adapter.enabled=true", "adapter.caBundle=Q0E=", "dashboard.enabled=true"]
ACCOUNTS = [
    f"trimtab-{program}"
    for program in ("horizontal", "recommender", "updater", "admission", "adapter", "dashboard")
]
READS = {"get", "list", "watch"}


def right(verb, rule):
    """Return the rights of one verb, as `patch pods/resize` or `get secrets (trimtab-webhook-tls)`."""
    (group,) = rule["apiGroups"]
    named = f" ({', '.join(shortened(rule['resourceNames']))})" if "resourceNames" in rule else ""
    for resource in rule["resources"]:
        kind, slash, sub = resource.partition("/")
        yield f"{verb} {kind}{'.' + group if group else ''}{slash}{sub}{named}"


def shortened(names):
    """Return the names, with those of a family as `trimtab-horizontal-0 to 15`."""
    stems = {name.rpartition("-")[0] for name in names if name.endswith("-15")}
    first = {f"{stem}-0": f"{stem}-0 to 15" for stem in stems}
    return [first.get(name, name) for name in names if name in first or name.rpartition("-")[0] not in stems]


def table():
    """Return the rights of a default installation with all programs, one row per account and place."""
    objects = manifests(set_values(VALUES))
    roles = {
        (one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]): one["rules"]
        for one in objects
        if one["kind"] in {"Role", "ClusterRole"}
    }
    rows = []
    for account in ACCOUNTS:
        for binding in objects:
            if binding["kind"] not in {"RoleBinding", "ClusterRoleBinding"} or account not in [
                subject["name"] for subject in binding["subjects"] if subject["kind"] == "ServiceAccount"
            ]:
                continue
            namespace = binding["metadata"].get("namespace", "")
            reference = binding["roleRef"]
            place = namespace if reference["kind"] == "Role" else ""
            rules = roles[reference["kind"], place, reference["name"]]
            found = {text: verb for rule in rules for verb in rule["verbs"] for text in right(verb, rule)}
            writes = sorted(text for text, verb in found.items() if verb not in READS)
            reads = sorted(text for text, verb in found.items() if verb in READS)
            rows.append(f"| `{account}` | {namespace or 'cluster'} | {cell(writes)} | {cell(reads)} |\n")
    return ["| account | where | writes | reads |\n", "|---|---|---|---|\n", *rows]


def cell(rights):
    return ", ".join(f"`{text}`" for text in merged(rights)) or "–"


def merged(rights):
    """Return the rights with the verbs of each resource together."""
    verbs: dict[str, list[str]] = {}
    for text in rights:
        verb, _, resource = text.partition(" ")
        verbs.setdefault(resource, []).append(verb)
    return [f"{','.join(sorted(found))} {resource}" for resource, found in sorted(verbs.items())]


def test_the_table_is_that_of_the_generated_rules():
    """Set TRIMTAB_RENEW=1 to write the table anew. A new right needs a sentence about its worth, too."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    text = before + BEGIN + "".join(table()) + END + after
    if os.environ.get("TRIMTAB_RENEW"):
        PAGE.write_text(text)
    assert PAGE.read_text() == text


@pytest.mark.parametrize("account", ACCOUNTS)
def test_the_worth_of_each_stolen_token_is_told(account):
    section = PAGE.read_text().partition("## What a stolen token is worth")[2].partition("\n## ")[0]
    assert re.search(rf"^\| `{account}` \| \S.{{40,}} \| \S.{{10,}} \|$", section, re.MULTILINE)


@pytest.mark.parametrize(
    "policy", sorted({one["metadata"]["name"] for one in manifests(set_values([])) if one["kind"] == "ValidatingAdmissionPolicy"})
)  # fmt: skip
def test_every_policy_is_named(policy):
    assert f"`{policy}`" in PAGE.read_text()
