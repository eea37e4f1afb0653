"""The scripts of `answers`: what clients do, right and wrong."""

from tests.lab.scripts.access import ACCESS, EVICTION, RESIZE
from tests.lab.scripts.custom import CUSTOM
from tests.lab.scripts.kinds import EVENTS, HPA_BOUNDS, HPAS, OTHERS, STATUS_METADATA, TABLES, WORKLOADS
from tests.lab.scripts.objects import APPLY_SCRIPT, CRUD, FIELD_VALIDATION, FINALIZERS, LISTS, OWNERS, WATCHES
from tests.lab.scripts.podresources import CLASSES, CONTAINER_RANGE, POD_LEVEL, POD_RANGE

SCRIPTS = (
    CRUD,
    FIELD_VALIDATION,
    LISTS,
    WORKLOADS,
    OTHERS,
    HPAS,
    EVENTS,
    APPLY_SCRIPT,
    FINALIZERS,
    CUSTOM,
    ACCESS,
    EVICTION,
    RESIZE,
    WATCHES,
    OWNERS,
    TABLES,
    STATUS_METADATA,
    CONTAINER_RANGE,
    POD_RANGE,
    POD_LEVEL,
    CLASSES,
    HPA_BOUNDS,
)
