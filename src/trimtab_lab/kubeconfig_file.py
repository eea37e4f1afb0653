"""The kubeconfig file of a running cluster. Two clusters never share one."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from trimtab_lab.serve import write_kubeconfig
from trimtab_lab.storage.codec import JsonObject


class KubeconfigInUseError(Exception):
    """Another running cluster has written this file. The message names it."""


class KubeconfigFile:
    """A kubeconfig that belongs to this process while the context lasts.

    Raise KubeconfigInUseError if another process has it. The lock is on a file beside it, because the kubeconfig itself is
    replaced. The system releases it with the process, however that ends. A kubeconfig that was written is removed with the
    context, because the cluster that it names ends too.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._clusters: Any = None
        self._lock_path = path.with_name(f".{path.name}.lock")
        path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            self._lock = self._lock_path.open("a", encoding="utf-8")
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._lock.close()
                raise KubeconfigInUseError(f"{path} belongs to a cluster that runs") from None
            if self._is_current():
                return
            self._lock.close()  # its last owner removed it meanwhile

    def _is_current(self) -> bool:
        """Return whether the locked file is the one that others would open."""
        try:
            return os.path.samestat(os.fstat(self._lock.fileno()), self._lock_path.stat())
        except FileNotFoundError:
            return False

    def write(self, kubeconfig: JsonObject) -> None:
        write_kubeconfig(self.path, kubeconfig)
        self._clusters = kubeconfig.get("clusters")

    def _remove(self) -> None:
        """Remove the kubeconfig, unless a user has added another cluster to it."""
        with suppress(OSError, yaml.YAMLError, AttributeError):
            found = yaml.safe_load(self.path.read_text(encoding="utf-8"))
            if found.get("clusters") == self._clusters:
                self.path.unlink()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._clusters is not None:
            self._remove()
        self._lock_path.unlink(missing_ok=True)
        self._lock.close()


def claim_free(path: Path) -> KubeconfigFile:
    """Claim the file, or the first of `NAME-2`, `NAME-3` and so on that no running cluster has."""
    number = 1
    while True:
        try:
            return KubeconfigFile(path if number == 1 else path.with_name(f"{path.name}-{number}"))
        except KubeconfigInUseError:
            number += 1
