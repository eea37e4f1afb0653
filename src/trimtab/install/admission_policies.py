"""The ValidatingAdmissionPolicy that restricts the updater, where RBAC cannot."""

from trimtab.install.names import UPDATER, cluster_object, scoped_name, where_enabled
from trimtab.install.template import NAMESPACE, Text, Tree


def policies() -> list[Tree]:
    """Return the policy that lets the updater change only labels and annotations of pods.

    RBAC restricts verbs and resources, not fields. `patch pods` alone would allow another image, and `create pods`,
    which dry runs need, any pod.
    """
    name = scoped_name("updater-pods")
    registration = "admissionregistration.k8s.io/v1"
    account = Text("request.userInfo.username == 'system:serviceaccount:", NAMESPACE, f":{UPDATER}'")
    pods = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["pods"],
        "scope": "Namespaced",
    }
    policy = cluster_object(
        registration,
        "ValidatingAdmissionPolicy",
        name,
        spec={
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [pods]},
            "matchConditions": [{"name": "by-the-updater", "expression": account}],
            "validations": [
                {
                    "expression": "request.operation != 'UPDATE' || object.spec == oldObject.spec",
                    "message": "Trimtab's updater may change a pod's size, labels and annotations only",
                    "reason": "Forbidden",
                },
                {
                    "expression": "request.operation != 'CREATE' || (has(request.dryRun) && request.dryRun)",
                    "message": "Trimtab's updater may create pods in dry runs only",
                    "reason": "Forbidden",
                },
            ],
        },
    )
    binding = cluster_object(
        registration,
        "ValidatingAdmissionPolicyBinding",
        name,
        spec={"policyName": name, "validationActions": ["Deny"]},
    )
    return where_enabled(UPDATER, policy, binding)
