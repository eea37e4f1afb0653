"""Run Kubernetes' own HPA tests: `make test-upstream` calls this.

The node is simulated, so that all tests run at the same time. With --real-node a handful of them (`chosen.py` says which and why)
run on a real kubelet in user-mode Linux, where pods use real CPU.

A test that fails runs once more by itself, and, with Trimtab, also with the cluster's own controller: some tests poll every
20 s and can miss what they wait for with any controller. Exit code 0 also where the programs cannot be built here, or a real
node cannot be had, after saying so.
"""

import argparse
import functools
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from tools.node import cluster as nodes
from tools.node.packages import NoPackageError
from tools.peers import build, releases
from tools.upstream import chosen, programs, report
from tools.upstream.cases import Case, Result, TestProgram
from tools.upstream.cluster import CONTROLLERS, KUBERNETES, TRIMTAB, on_real_node, on_simulated_node

Start = Callable[[Path, str], AbstractContextManager[Path]]
"""Starts a cluster in a directory with an HPA controller, and gives its kubeconfig."""


def main() -> None:
    """Build, start, run and print."""
    options = _options()
    try:
        run = None if options.list else _prepared(options)
        cases = _listed(options)
    except (build.BuildFailedError, chosen.UnknownTestError) as error:
        sys.exit(f"test-upstream: {error}")
    except (build.CannotBuildError, NoPackageError) as error:
        print(f"test-upstream: SKIPPED, none of Kubernetes' tests was run: {error}")
        return
    if run is None:
        print("\n".join(case.name for case in cases))
        return
    sys.exit(0 if run.execute(cases) else 1)


def _listed(options: argparse.Namespace) -> list[Case]:
    """Return the chosen tests. Listing needs the test program and no cluster, and leaves no files."""
    with tempfile.TemporaryDirectory(prefix="trimtab-upstream-") as scratch:
        program = TestProgram(programs.ensure_program("e2e"), Path("/nonexistent"), Path(scratch))
        cases = program.cases()
    names = chosen.ON_A_REAL_NODE if options.real_node and not options.match else None
    return chosen.among(cases, options.match, options.skip, names)


def _prepared(options: argparse.Namespace) -> "Run":
    """Build what is missing; raise an error that says why if this machine cannot run the tests."""
    release = releases.chosen()
    names = (*programs.PEERS, *(programs.IN_PODS if options.real_node else ()))
    if options.real_node and (reason := nodes.why_not(names)):
        raise build.CannotBuildError(reason)
    build.ensure(names)
    test_program = programs.ensure_program("e2e")
    directory = Path(options.directory or tempfile.mkdtemp(prefix="trimtab-upstream-"))
    directory.mkdir(parents=True, exist_ok=True)
    start: Start
    if options.real_node:
        images = directory / "images.tar"
        programs.write_images(test_program, images)
        start = functools.partial(on_real_node, images=images)
    else:
        start = functools.partial(on_simulated_node, node_program=programs.ensure_program("node"))
    kind = "a real" if options.real_node else "a simulated"
    said = f"Kubernetes {release} with {options.controller} on {kind} node; logs in {directory}"
    print(f"test-upstream: {said}", flush=True)
    return Run(options, directory, test_program, start)


class Run:
    """One run of the chosen tests, with the second runs of those that failed."""

    def __init__(
        self, options: argparse.Namespace, directory: Path, test_program: Path, start: Start
    ) -> None:
        self._options = options
        self._directory = directory
        self._test_program = test_program
        self._start = start
        self._jobs = options.jobs or (chosen.JOBS_ON_A_REAL_NODE if options.real_node else chosen.JOBS)

    def execute(self, cases: Sequence[Case]) -> bool:
        """Run the tests; return whether all passed, at once or by themselves."""
        print(f"test-upstream: {len(cases)} tests, {self._jobs} at a time", flush=True)
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
        with self._start(directory, controller) as kubeconfig:
            program = TestProgram(self._test_program, kubeconfig, directory / "tests")
            results = program.run_all(
                cases, self._jobs, lambda result: print(report.line(result), flush=True)
            )
        print(report.summary(results, controller), flush=True)
        report.save(results, controller, directory / "results.json")
        return results


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make test-upstream ARGS=",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--real-node",
        action="store_true",
        help="a handful of tests on a real kubelet in user-mode Linux; --match names others",
    )
    parser.add_argument(
        "--controller", choices=CONTROLLERS, default=TRIMTAB, help="the HPA controller to test"
    )
    parser.add_argument(
        "--jobs",
        type=_positive,
        help=f"tests at the same time (default: all, on a real node {chosen.JOBS_ON_A_REAL_NODE})",
    )
    parser.add_argument(
        "--match", type=_expression, default="", help="run only tests whose name has this regular expression"
    )
    parser.add_argument(
        "--skip",
        type=_expression,
        default="$^",
        help="leave out tests whose name has this regular expression",
    )
    parser.add_argument("--directory", help="where logs and results go (default: a new temporary one)")
    parser.add_argument("--list", action="store_true", help="print the tests and run none")
    return parser.parse_args()


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of tests; use 1 or more")
    return int(text)


def _expression(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {error}") from error
    return text


if __name__ == "__main__":
    main()
