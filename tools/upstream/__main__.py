"""Run Kubernetes' own HPA tests: `make test-upstream` calls this.

A test that fails runs once more by itself, and, with Trimtab, also with the cluster's own controller: some tests poll every
20 s and can miss what they wait for with any controller. Exit code 0 also where the programs cannot be built here, after
saying so.
"""

import argparse
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.peers import build, releases
from tools.upstream import programs, report
from tools.upstream.cases import Case, Result, TestProgram
from tools.upstream.cluster import CONTROLLERS, KUBERNETES, TRIMTAB, TestCluster


def main() -> None:
    """Build, start, run and print."""
    options = _options()
    try:
        release = releases.chosen()
        test_program, node_program = programs.ensure()
    except build.BuildFailedError as error:
        sys.exit(f"test-upstream: {error}")
    except build.CannotBuildError as error:
        print(f"test-upstream: SKIPPED, none of Kubernetes' tests was run: {error}")
        return
    directory = Path(options.directory or tempfile.mkdtemp(prefix="trimtab-upstream-"))
    directory.mkdir(parents=True, exist_ok=True)
    print(f"test-upstream: Kubernetes {release} with {options.controller}; logs in {directory}", flush=True)
    run = Run(options, directory, test_program, node_program)
    if options.list:
        print("\n".join(case.name for case in run.listed()))
        return
    sys.exit(0 if run.execute() else 1)


class Run:
    """One run of the chosen tests, with the second runs of those that failed."""

    def __init__(
        self, options: argparse.Namespace, directory: Path, test_program: Path, node_program: Path
    ) -> None:
        self._options = options
        self._directory = directory
        self._test_program = test_program
        self._node_program = node_program

    def listed(self) -> list[Case]:
        """Return the chosen tests; listing needs no cluster."""
        program = TestProgram(self._test_program, Path("/nonexistent"), self._directory / "list")
        match, skip = re.compile(self._options.match), re.compile(self._options.skip)
        return [case for case in program.cases() if match.search(case.name) and not skip.search(case.name)]

    def execute(self) -> bool:
        """Run the tests; return whether all passed, at once or by themselves."""
        cases = self.listed()
        print(f"test-upstream: {len(cases)} tests, {self._options.jobs} at a time", flush=True)
        results = self._run_with(self._options.controller, cases)
        failed = [result.case for result in results if not result.has_passed]
        if not failed:
            return True
        print(f"test-upstream: {len(failed)} failed and run once more:", flush=True)
        again = self._run_with(self._options.controller, failed, "again")
        if self._options.controller == TRIMTAB:
            print("test-upstream: the same tests with the cluster's own controller:", flush=True)
            self._run_with(KUBERNETES, failed, "control")
        return all(result.has_passed for result in again)

    def _run_with(self, controller: str, cases: Sequence[Case], folder: str = "first") -> list[Result]:
        directory = self._directory / folder
        directory.mkdir(exist_ok=True)
        with TestCluster(directory, self._node_program, controller) as cluster:
            program = TestProgram(self._test_program, cluster.kubeconfig, directory / "tests")
            results = program.run_all(
                cases, self._options.jobs, lambda result: print(report.line(result), flush=True)
            )
        print(report.summary(results, controller), flush=True)
        report.save(results, controller, directory / "results.json")
        return results


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make test-upstream ARGS=", description=__doc__)
    parser.add_argument(
        "--controller", choices=CONTROLLERS, default=TRIMTAB, help="the HPA controller to test"
    )
    parser.add_argument("--jobs", type=int, default=34, help="tests at the same time (default: all)")
    parser.add_argument("--match", default="", help="run only tests whose name has this regular expression")
    parser.add_argument("--skip", default="$^", help="leave out tests whose name has this regular expression")
    parser.add_argument("--directory", help="where logs and results go (default: a new temporary one)")
    parser.add_argument("--list", action="store_true", help="print the tests and run none")
    return parser.parse_args()


if __name__ == "__main__":
    main()
