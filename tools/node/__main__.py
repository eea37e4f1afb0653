"""Run the tests on real nodes: build what is missing once, then pytest.

`make test-node` calls this, and `make test-neighbours` calls it with the argument `neighbours`: programs of other projects, which
take longer to build, run beside Trimtab there.

Exit code 0 also where a real node cannot be had (no Go, no network, no Debian packages, another processor, a kernel that does not
boot), after saying so in one line. What failed is run once more by itself.
"""

import platform
import sys
import time

from tools import second_run
from tools.node import cluster, machine
from tools.node.packages import NoPackageError
from tools.peers import build, releases


def why_not() -> str | None:
    """Return why this machine cannot run a real node, or None if it can."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return (
            f"user-mode Linux needs Linux on x86_64, and this is {platform.system()} on {platform.machine()}"
        )
    if missing := machine.missing_programs():
        return f"{', '.join(missing)} not found; on Debian: apt-get install qemu-system-x86 e2fsprogs gcc"
    return None


def main() -> None:
    """Build what is missing and run the tests."""
    arguments = sys.argv[1:]
    suite, folder = "node", "tests/node"
    if arguments[:1] == ["neighbours"]:
        suite, folder = "neighbours", "tests/node/neighbours"
        del arguments[0]
    reason = why_not()
    started = time.monotonic()
    try:
        if reason is None:
            boot = cluster.ensure_programs(cluster.NEIGHBOURS if suite == "neighbours" else ())
            reason = machine.why_it_does_not_boot(boot)
    except build.BuildFailedError as error:
        sys.exit(f"test-{suite}: {error}")
    except (build.CannotBuildError, NoPackageError) as error:
        reason = str(error)
    if reason is not None:
        print(f"test-{suite}: SKIPPED, nothing was run on a real node: {reason}")
        return
    print(
        f"test-{suite}: kubelet {releases.chosen()}, ready after {time.monotonic() - started:.0f} s",
        flush=True,
    )
    sys.exit(second_run.run(arguments or [folder], ("-m", suite, "-rs")))


if __name__ == "__main__":
    main()
