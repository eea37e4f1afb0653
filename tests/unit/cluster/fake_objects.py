"""A small server of single objects by path: create, read, replace, merge-patch, delete, with resourceVersions."""

import copy
import json
from typing import Any

from tests.unit.cluster.fake_api import Answer, FakeApi, Incoming, status

Json = dict[str, Any]


def merge(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict) or not isinstance(target, dict):
        return patch
    result = dict(target)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key, {}), value)
    return result


class FakeObjects(FakeApi):
    """Keeps whatever is sent to it; a write with an old resourceVersion or another uid is a conflict."""

    def __init__(self) -> None:
        super().__init__()
        self.by_path: dict[str, Json] = {}

    def _serve(self, request: Incoming) -> Answer:
        if request.method != "GET":
            self.writes.append(request)
        body = json.loads(request.body) if request.body else {}
        if request.method == "POST":
            return self._create(request.path, body)
        path = request.path.removesuffix("/scale")
        current = self.by_path.get(path)
        if current is None:
            return Answer(404, status(404, "NotFound", f"{path} not found"))
        if request.method == "GET":
            return Answer(200, current)
        if request.method == "DELETE":
            return self._delete(path, current, body)
        wanted = merge(current, body) if request.method == "PATCH" else body
        return self._store(path, current, wanted, body)

    def _create(self, path: str, body: Json) -> Answer:
        path = f"{path}/{body['metadata']['name']}"
        if path in self.by_path:
            return Answer(409, status(409, "AlreadyExists", "already exists"))
        return self._keep(path, {**body, "metadata": {**body["metadata"], "uid": f"uid-{self.version}"}}, 201)

    def _store(self, path: str, current: Json, wanted: Json, sent: Json) -> Answer:
        meta = sent.get("metadata", {})
        for name in ("resourceVersion", "uid"):
            if name in meta and meta[name] != current["metadata"][name]:
                return Answer(409, status(409, "Conflict", "the object has been modified"))
        return self._keep(path, wanted, 200)

    def _delete(self, path: str, current: Json, options: Json) -> Answer:
        for name, value in options.get("preconditions", {}).items():
            if current["metadata"][name] != value:
                return Answer(409, status(409, "Conflict", "precondition failed"))
        del self.by_path[path]
        return Answer(200, {"kind": "Status", "status": "Success"})

    def _keep(self, path: str, thing: Json, code: int) -> Answer:
        self.version += 1
        thing = copy.deepcopy(thing)
        thing["metadata"]["resourceVersion"] = str(self.version)
        self.by_path[path] = thing
        return Answer(code, thing)
