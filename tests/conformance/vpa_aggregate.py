"""VPA vectors: container samples, memory windows, OOM kills, aggregates and their checkpoints."""

from typing import Any

from tests.conformance.differences import differences
from tests.conformance.registry import checks
from tests.conformance.vpa_dumps import as_doubles, config_of, dump_aggregate, dump_container, saved
from trimtab.decide.vertical.cluster_state.aggregates import Aggregate, AggregateTable
from trimtab.decide.vertical.cluster_state.containers import ContainerHistory, ContainerTable
from trimtab.model.json import wire
from trimtab.model.times import parse_ns
from trimtab.model.vpa.types import ContainerResourcePolicy


class _World:
    """The aggregates and containers of one case."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.per_vpa = bool((case.get("featureGates") or {}).get("PerVPAConfig"))
        self.table = AggregateTable(config_of(case["config"]), block_columns=8)
        created = parse_ns(case["created"])
        self.aggregates = {name: Aggregate(self.table, created) for name in ("A", "B")}
        containers = ContainerTable(self.table)
        self.containers = {}
        for name, given in case["containers"].items():
            self.containers[name] = ContainerHistory(containers)
            self.containers[name].aggregate = self.aggregates[given["aggregate"]].row

    def finish(self, now_ns: int) -> dict[str, Any]:
        """Return the final dumps; the copies are made last, for merging moves reference times."""
        dumps = {name: dump_aggregate(aggregate, now_ns) for name, aggregate in self.aggregates.items()}
        reloaded = Aggregate(self.table, now_ns)
        reloaded.load(self.aggregates["A"].save(now_ns))
        dumps["reloadedA"] = dump_aggregate(reloaded, now_ns)
        merged = Aggregate(self.table, now_ns)
        merged.merge(self.aggregates["A"])
        merged.merge(self.aggregates["B"])
        dumps["mergedAB"] = dump_aggregate(merged, now_ns)
        return {
            "aggregates": dumps,
            "containers": {name: dump_container(container) for name, container in self.containers.items()},
        }


def _normal(expect: dict[str, Any]) -> Any:
    return as_doubles({**expect, "checkpoint": saved(expect["checkpoint"])})


@checks("kind", "container", stem="aggregate")
def container(case):
    world = _World(case)
    for number, step in enumerate(case["ops"]):
        wrong = _step(step, world)
        if wrong:
            return f"ops[{number}] {step['op']}: {wrong}"
    expect = case["expect"]
    want = {
        "aggregates": {name: _normal(dump) for name, dump in expect["aggregates"].items()},
        "containers": as_doubles(expect["containers"]),
    }
    got = world.finish(parse_ns(case["now"]))
    got["aggregates"] = {name: got["aggregates"][name] for name in expect["aggregates"]}
    return differences(want, as_doubles(got))


def _step(step: dict[str, Any], world: _World) -> str | None:
    match step["op"]:
        case "policy":
            policy = step["policy"] and wire.convert(step["policy"], ContainerResourcePolicy)
            world.aggregates[step["aggregate"]].apply_policy(policy or None, per_vpa=world.per_vpa)
            return None
        case "dump":
            dump = dump_aggregate(world.aggregates[step["aggregate"]], parse_ns(step["now"]))
            return differences(_normal(step["expect"]), as_doubles(dump))
        case "dumpContainer":
            return differences(
                as_doubles(step["expect"]), as_doubles(dump_container(world.containers[step["container"]]))
            )
    return differences(step["expect"], _sample(step, world.containers[step["container"]]))


def _sample(step: dict[str, Any], history: ContainerHistory) -> dict[str, Any]:
    time_ns = parse_ns(step["time"])
    match step["op"]:
        case "cpu":
            return {"accepted": history.add_cpu(step["millicores"], time_ns)}
        case "memory":
            return {"accepted": history.add_memory(step["bytes"], time_ns)}
        case _:
            refusal = history.record_oom(time_ns, step["requestBytes"])
            return {"accepted": refusal is None, "error": refusal}
