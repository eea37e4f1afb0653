"""LimitRange: the namespace's bounds on containers and pods."""

from trimtab.model.meta import ObjectMeta
from trimtab.model.resources import ResourceList
from trimtab.model.wire import Wire


class LimitRangeItem(Wire):
    """Bounds and defaults for one type of thing (Container, Pod, ...)."""

    type: str = ""
    max: ResourceList = {}
    min: ResourceList = {}
    default: ResourceList = {}
    default_request: ResourceList = {}
    max_limit_request_ratio: ResourceList = {}


class LimitRangeSpec(Wire):
    """The items of a LimitRange."""

    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(Wire):
    """A LimitRange."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LimitRangeSpec = LimitRangeSpec()
