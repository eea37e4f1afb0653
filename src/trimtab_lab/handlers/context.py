"""What all handlers share."""

from dataclasses import dataclass

from trimtab.clock import Clock
from trimtab.model.core.server_rules import KUBERNETES_1_37, ServerRules
from trimtab_lab.admission import AdmissionChain
from trimtab_lab.apiserver.request import ApiResponse, ResourceRequest
from trimtab_lab.handlers.views import choose_view
from trimtab_lab.kinds.registry import Registry
from trimtab_lab.storage.codec import Identities
from trimtab_lab.storage.store import Entry, ObjectStore


@dataclass(frozen=True)
class HandlerContext:
    """The registry, the storage and the admission chain of one server."""

    clock: Clock
    registry: Registry
    store: ObjectStore
    identities: Identities
    admission: AdmissionChain
    #: Whether plain writes update managedFields; server-side apply always does.
    tracks_fields: bool = True
    rules: ServerRules = KUBERNETES_1_37

    def find(self, request: ResourceRequest) -> Entry | None:
        """Return the object that the path names, or None."""
        return self.store.get(request.resource.storage, request.key)

    def get(self, request: ResourceRequest) -> Entry:
        """Return the object that the path names, or raise NotFound."""
        entry = self.find(request)
        if entry is None:
            raise request.resource.not_found(request.info.name)
        return entry

    def respond(self, request: ResourceRequest, entry: Entry, status: int = 200) -> ApiResponse:
        """Return the object in the form that the client accepts."""
        return ApiResponse(status, choose_view(request, self.clock.now).render(entry))
