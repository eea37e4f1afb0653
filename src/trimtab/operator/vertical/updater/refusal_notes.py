"""Writes on pods that their replacement would be refused, and takes that back."""

import logging
from collections.abc import Iterable

from trimtab.cluster import errors
from trimtab.cluster.client import Client, Preconditions
from trimtab.cluster.resource import PODS
from trimtab.decide.vertical.update.refused_replacements import REFUSED_ANNOTATION
from trimtab.model.core.pod import Pod

log = logging.getLogger(__name__)


async def write_refusal_notes(client: Client, notes: Iterable[tuple[Pod, str | None]]) -> None:
    """Set each pod's note, or remove it where it is None; what fails is tried again in the next loop."""
    for pod, note in notes:
        meta = pod.metadata
        body = {"metadata": {"annotations": {REFUSED_ANNOTATION: note}}}
        try:
            await client.patch(
                PODS, meta.name, meta.namespace, body, preconditions=Preconditions(uid=meta.uid)
            )
        except (errors.NotFound, errors.Conflict):
            continue  # the pod is gone, or another one has its name
        except errors.Fenced:
            raise
        except errors.ClusterError as error:
            log.warning("pod %s: its refused replacement is not noted: %s", meta.key, error)
