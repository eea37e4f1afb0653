"""autoscaling/v1 Scale: the one door through which replicas are read and written."""

from trimtab.model.meta import ObjectMeta
from trimtab.model.wire import Wire


class ScaleSpec(Wire):
    """How many replicas are wanted."""

    replicas: int = 0


class ScaleStatus(Wire):
    """How many there are, and the label query (as text) that finds them."""

    replicas: int = 0
    selector: str = ""


class Scale(Wire):
    """The scale of a workload; its metadata carries the workload's own uid."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ScaleSpec = ScaleSpec()
    status: ScaleStatus = ScaleStatus()
