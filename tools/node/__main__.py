"""Run the tests on real nodes: build what is missing once, then pytest.

`make test-node` calls this, and `make test-neighbours` calls it with the argument `neighbours`: programs of other projects, which
take longer to build, run beside Trimtab there.

Exit code 0 also where a real node cannot be had (no Go, no network, no Debian packages, another processor, a kernel that does not
boot), after saying so in one line. What failed is run once more by itself.
"""

import sys
import time

from tools import second_run
from tools.node import cluster
from tools.peers import build, releases


def main() -> None:
    """Build what is missing and run the tests."""
    arguments = sys.argv[1:]
    suite, folder, programs = "node", "tests/node", list(cluster.PEERS)
    if arguments[:1] == ["neighbours"]:
        suite, folder = "neighbours", "tests/node/neighbours"
        programs.extend(cluster.NEIGHBOURS)
        del arguments[0]
    started = time.monotonic()
    try:
        reason = cluster.why_not(programs)
    except build.BuildFailedError as error:
        sys.exit(f"test-{suite}: {error}")
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
