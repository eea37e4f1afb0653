"""Events of both groups, which name their fields differently and share one storage."""

from collections.abc import Mapping

from trimtab_lab.kinds.strategy import Strategy, text_at
from trimtab_lab.storage.codec import JsonObject

#: core/v1 name -> events.k8s.io/v1 name.
RENAMED = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
BACK = {new: old for old, new in RENAMED.items()}
NEW_GROUP = "events.k8s.io"
#: What the typed core API always writes, present or not.
CORE_ALWAYS: dict[str, object] = {
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}
#: What the new group leaves out when it is empty.
NEW_OMITS = ("reportingController", "reportingInstance", "note", "reason", "type", "action")


class EventStrategy(Strategy):
    """Events, stored in the form of the core group."""

    def default(self, obj: JsonObject) -> None:
        """Fill in what the typed API always writes."""
        if not obj.get("apiVersion", "").startswith(NEW_GROUP):
            for name, value in CORE_ALWAYS.items():
                obj.setdefault(name, value)

    def convert(self, obj: JsonObject, group: str, version: str) -> JsonObject:
        """Rename the fields that differ."""
        is_new = obj.get("apiVersion", "").startswith(NEW_GROUP)
        wants_new = group == NEW_GROUP
        if is_new != wants_new:
            names = RENAMED if wants_new else BACK
            obj = {names.get(name, name): value for name, value in obj.items()}
            obj["apiVersion"] = f"{group}/{version}" if group else version
            if wants_new:
                obj = {name: value for name, value in obj.items() if value or name not in NEW_OMITS}
            else:
                self.default(obj)
        return super().convert(obj, group, version)

    def fields(self, obj: JsonObject) -> Mapping[str, str]:
        """Return the values that field selectors compare, in the core form."""
        about = {
            f"{prefix}.{name}": text_at(obj, "involvedObject", name)
            for prefix in ("involvedObject", "regarding")
            for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
        }
        return {
            **about,
            "reason": text_at(obj, "reason"),
            "type": text_at(obj, "type"),
            "source": text_at(obj, "source", "component") or text_at(obj, "reportingComponent"),
            "reportingComponent": text_at(obj, "reportingComponent"),
            "reportingController": text_at(obj, "reportingComponent"),
        }
