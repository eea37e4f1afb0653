"""Renew the lab's table of protobuf field numbers from the Go types of a Kubernetes release.

    python -m tools.lab_protobuf "$(go env GOMODCACHE)/k8s.io" v0.36.3

Go clients send built-in kinds as protobuf. The table holds, for each message, its fields by number: the JSON name, the
type, and whether an empty value is kept. Field numbers are API contract; nothing else is taken over.
"""

import json
import re
import sys
from pathlib import Path
from typing import NamedTuple

TARGET = Path(__file__).parent.parent / "src" / "trimtab_lab" / "schemas" / "protobuf.json"
PACKAGES = {
    "core.v1": "api@{}/core/v1",
    "apps.v1": "api@{}/apps/v1",
    "batch.v1": "api@{}/batch/v1",
    "autoscaling.v1": "api@{}/autoscaling/v1",
    "autoscaling.v2": "api@{}/autoscaling/v2",
    "policy.v1": "api@{}/policy/v1",
    "coordination.v1": "api@{}/coordination/v1",
    "events.v1": "api@{}/events/v1",
    "rbac.v1": "api@{}/rbac/v1",
    "authentication.v1": "api@{}/authentication/v1",
    "authorization.v1": "api@{}/authorization/v1",
    "admissionregistration.v1": "api@{}/admissionregistration/v1",
    "meta.v1": "apimachinery@{}/pkg/apis/meta/v1",
}
#: Go package aliases in type expressions.
ALIASES = {"v1": "core.v1", "corev1": "core.v1", "metav1": "meta.v1", "authenticationv1": "authentication.v1"}
SPECIAL = {
    "resource.Quantity": "quantity",
    "intstr.IntOrString": "intstr",
    "runtime.RawExtension": "json",
    "meta.v1.Time": "time",
    "meta.v1.MicroTime": "time",
    "meta.v1.Duration": "duration",
    "meta.v1.FieldsV1": "json",
    "types.UID": "string",
}
SCALARS = {"string": "string", "bool": "bool", "[]byte": "bytes", "float64": "double", "float32": "double"}
SCALARS |= dict.fromkeys(("int", "int32", "int64", "uint32", "uint64", "uint16", "int16"), "int")
STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.DOTALL | re.MULTILINE)
NAMED = re.compile(r"^type (\w+) (string|bool|int\w*|map\[[\w.]+\][\w.\[\]]+|\[\][\w.]+)$", re.MULTILINE)
FIELD = re.compile(
    r"^\s*(?:\w+\s+)?([\w.*\[\]]+)\s+`json:\"([^\"]*)\"[^`]*protobuf:\"(\w+),(\d+)[^\"]*\"", re.MULTILINE
)


class Found(NamedTuple):
    """What the sources say."""

    structs: dict[str, str]
    named: dict[str, str]


def read(root: Path, version: str) -> Found:
    """Read every struct and named type."""
    structs: dict[str, str] = {}
    named: dict[str, str] = {}
    for package, place in PACKAGES.items():
        for path in sorted((root / place.format(version)).glob("*.go")):
            text = path.read_text(encoding="utf-8")
            if path.name.startswith(("zz_", "generated")) or path.name.endswith("_test.go"):
                continue
            structs |= {f"{package}.{name}": body for name, body in STRUCT.findall(text)}
            named |= {f"{package}.{name}": kind for name, kind in NAMED.findall(text)}
    return Found(structs, named)


def kind_of(expression: str, package: str, found: Found) -> str:
    """Return the table's word for a Go type."""
    expression = expression.removeprefix("*")
    if expression in SCALARS:
        return SCALARS[expression]
    if expression.startswith("[]"):
        return "[]" + kind_of(expression[2:], package, found)
    if expression.startswith("map["):
        return "{}" + kind_of(expression.partition("]")[2], package, found)
    alias, dot, name = expression.rpartition(".")
    full = f"{ALIASES.get(alias, alias)}.{name}" if dot else f"{package}.{expression}"
    if full in SPECIAL or expression in SPECIAL:
        return SPECIAL.get(full) or SPECIAL[expression]
    if full in found.named:
        inner = kind_of(found.named[full], full.rpartition(".")[0], found)
        # A named list is a message of its own on the wire, with the items in field 1.
        return f"items:{inner[2:]}" if inner.startswith("[]") else inner
    return f"m:{full}" if full in found.structs else "skip"


def fields_of(name: str, found: Found) -> dict[str, list[str]]:
    """Return the fields of a message by number."""
    package = name.rpartition(".")[0]
    fields: dict[str, list[str]] = {}
    for expression, tag, _, number in FIELD.findall(found.structs[name]):
        json_name, _, options = tag.partition(",")
        is_kept = expression.startswith("*") or not ("omitempty" in options or "omitzero" in options)
        inline = "inline" in options
        fields[number] = [
            "" if inline else json_name,
            kind_of(expression, package, found),
            "k" if is_kept else "",
        ]
    return fields


def main(root: str, version: str) -> None:
    """Write the table."""
    found = read(Path(root), version)
    table = {name: fields_of(name, found) for name in sorted(found.structs)}
    lines = [
        f"{json.dumps(name)}: {json.dumps(fields, separators=(',', ':'))}"
        for name, fields in table.items()
        if fields
    ]
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{len(lines)} messages, {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
