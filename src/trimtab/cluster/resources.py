"""The resources that Trimtab itself reads and writes, each with the type that it is read into."""

from trimtab.cluster.resource import Json, Resource
from trimtab.model.core.objects import Lease, LimitRange, Node
from trimtab.model.core.pod import Pod
from trimtab.model.core.workloads import Job, ReplicationController, Workload

PODS = Resource("", "v1", "pods", "Pod", Pod)
NODES = Resource("", "v1", "nodes", "Node", Node, namespaced=False)
LIMIT_RANGES = Resource("", "v1", "limitranges", "LimitRange", LimitRange)
REPLICATION_CONTROLLERS = Resource(
    "", "v1", "replicationcontrollers", "ReplicationController", ReplicationController
)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment", Workload)
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet", Workload)
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet", Workload)
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet", Workload)
JOBS = Resource("batch", "v1", "jobs", "Job", Job)
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease", Lease)
EVENTS = Resource("events.k8s.io", "v1", "events", "Event", Json)
CORE_EVENTS = Resource("", "v1", "events", "Event", Json)
