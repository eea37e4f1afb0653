"""Run the tests that need the real programs: build them once, then pytest. `make test-real` calls this.

Exit code 0 also where the programs cannot be had (no `go`, no network), after saying so in one clear line.
"""

import subprocess
import sys

from tools.peers import build


def main() -> None:
    """Build what is missing and run the tier."""
    try:
        where = build.ensure(list(build.PROGRAMS))
    except build.CannotBuildError as error:
        print(f"test-real: SKIPPED, nothing was run against the real programs: {error}")
        return
    for name in build.OPTIONAL:
        try:
            build.ensure([name])
        except build.CannotBuildError as error:
            print(f"test-real: without {name}: {error}", flush=True)
    print(f"test-real: using the programs in {where}", flush=True)
    run = subprocess.run([sys.executable, "-m", "pytest", "-m", "real", "-rs", *sys.argv[1:]], check=False)
    sys.exit(run.returncode)


if __name__ == "__main__":
    main()
