"""The rules of services. Addresses and ports are assigned in order, so that runs repeat."""

from datetime import datetime

from trimtab.model.field_errors import FieldError
from trimtab_lab.apiserver.errors import invalid_value, required
from trimtab_lab.resources.pod_spec import PORT_RANGE
from trimtab_lab.resources.strategy import Strategy, set_defaults
from trimtab_lab.storage.codec import JsonObject

FIRST_NODE_PORT = 30_000


class ServiceStrategy(Strategy):
    """Services."""

    returns_deleted = True

    def __init__(self) -> None:
        self._addresses = 0
        self._ports = 0

    def default(self, obj: JsonObject) -> None:
        """Fill in type, ports and affinity."""
        spec = obj.setdefault("spec", {})
        set_defaults(spec, type="ClusterIP", sessionAffinity="None")
        for port in spec.get("ports") or ():
            port.setdefault("protocol", "TCP")
            if "port" in port:
                port.setdefault("targetPort", port["port"])
        if spec["type"] != "ExternalName":
            spec.setdefault("internalTrafficPolicy", "Cluster")

    def prepare_for_create(self, obj: JsonObject, now: datetime) -> None:
        """Assign an address and node ports."""
        spec = obj["spec"]
        obj["status"] = {"loadBalancer": {}}
        if spec["type"] == "ExternalName":
            return
        if not spec.get("clusterIP"):
            spec["clusterIP"] = self._next_address()
        spec.update(clusterIPs=[spec["clusterIP"]], ipFamilies=["IPv4"], ipFamilyPolicy="SingleStack")
        if spec["type"] in ("NodePort", "LoadBalancer"):
            for port in spec.get("ports") or ():
                if not port.get("nodePort"):
                    self._ports += 1
                    port["nodePort"] = FIRST_NODE_PORT + self._ports

    def prepare_for_update(self, obj: JsonObject, old: JsonObject) -> None:
        """Keep the address."""
        for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if name in old["spec"] and obj["spec"]["type"] != "ExternalName":
                obj["spec"].setdefault(name, old["spec"][name])

    def _next_address(self) -> str:
        self._addresses += 1
        return f"10.96.{self._addresses // 250}.{self._addresses % 250 + 1}"

    def validate(self, obj: JsonObject) -> list[FieldError]:
        """Check ports and names."""
        spec = obj["spec"]
        errors: list[FieldError] = []
        if spec["type"] == "ExternalName":
            return [] if spec.get("externalName") else [required("spec.externalName")]
        if not spec.get("ports") and spec.get("clusterIP") != "None":
            errors.append(required("spec.ports"))
        for index, port in enumerate(spec.get("ports") or ()):
            if not 0 < port.get("port", 0) < 65536:
                errors.append(invalid_value(f"spec.ports[{index}].port", port.get("port", 0), PORT_RANGE))
            if len(spec["ports"]) > 1 and not port.get("name"):
                errors.append(required(f"spec.ports[{index}].name"))
        return errors

    def validate_change(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Reject a change of the address."""
        before, after = old["spec"].get("clusterIP"), obj["spec"].get("clusterIP")
        if before and after and before != after:
            return [invalid_value("spec.clusterIPs[0]", [after], "may not change once set")]
        return []
