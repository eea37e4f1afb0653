"""Examples of every command, which end its `--help`."""

from typing import Final, NamedTuple


class Example(NamedTuple):
    """A command line, and what it does."""

    does: str
    line: str


EXAMPLES: Final[dict[str, tuple[Example, ...]]] = {
    "adapter": (
        Example("Serve the metrics that a configuration file names", "trimtab adapter --config adapter.yaml"),
        Example("See which queries the rules of a file become", "trimtab adapter test rules.yaml"),
    ),
    "adapter test": (
        Example("Print the query of each rule", "trimtab adapter test rules.yaml"),
        Example(
            "Print the values that a Prometheus answers too",
            "trimtab adapter test rules.yaml --prometheus http://127.0.0.1:9090 --namespace shop",
        ),
    ),
    "completion": (
        Example("Complete commands and names in this shell", "source <(trimtab completion bash)"),
        Example("The same in fish", "trimtab completion fish | source"),
    ),
    "convert": (
        Example("Turn native HPAs into Trimtab's kind", "trimtab convert hpa.yaml --to trimtab"),
        Example(
            "Convert what runs in a namespace",
            "kubectl get hpa -n shop -o yaml | trimtab convert - --to trimtab",
        ),
    ),
    "dashboard": (
        Example("Show the cluster of the current context", "trimtab dashboard"),
        Example("Show one namespace, with native HPAs", "trimtab dashboard -n shop --native-hpas"),
    ),
    "explain": (
        Example("Why does this HPA have so many replicas?", "trimtab explain hpa/web -n shop"),
        Example("Why this size, and what will happen to this pod?", "trimtab explain pod/db-0 -n shop"),
        Example(
            "Ask the running operator",
            "trimtab explain hpa/web -n shop --operator http://127.0.0.1:8080",
        ),
        Example(
            "What would kube-controller-manager decide?",
            "trimtab explain hpa/web -n shop --compat kubernetes-1.37",
        ),
        Example("Keep a decision for trimtab replay", "trimtab explain hpa/web -n shop -o record > web.json"),
    ),
    "install": (
        Example("Install with the default values", "trimtab install | kubectl apply --server-side -f -"),
        Example(
            "Install or update only the definitions",
            "trimtab install --only=crds | kubectl apply --server-side -f -",
        ),
        Example(
            "Look first: act on native HPAs, and write nothing",
            "trimtab install --set settings.dry-run=true --set settings.native-hpas=true",
        ),
    ),
    "lab": (
        Example("Run an empty cluster for kubectl", "trimtab lab --write-kubeconfig /tmp/lab.kubeconfig"),
        Example("Run Deployments in it too", "trimtab lab --with-workloads"),
    ),
    "plugin": (
        Example("See which plug-ins are installed", "trimtab plugin list"),
        Example("Start a pod filter of your own", "trimtab plugin new pod-filter example.com/MyFilter"),
    ),
    "plugin list": (Example("See which plug-ins are installed", "trimtab plugin list"),),
    "plugin check": (
        Example("Test a plug-in before an operator loads it", "trimtab plugin check example.com/NotDraining"),
        Example(
            "Test a replica policy with its parameters",
            """trimtab plugin check example.com/StepPlan --parameters '{"metric": "requests", """
            """"steps": [{"above": 0, "pods": 1, "per": 100}]}'""",
        ),
        Example(
            "Test a metric source with a metric that it answers",
            "SQL_QUEUE_DSN=:memory: trimtab plugin check example.com/sql-queue --metric jobs_waiting --label queue=orders "
            """--parameters '{"queries": {"jobs_waiting": "SELECT 3"}}'""",
        ),
    ),
    "plugin new": (
        Example("Start a replica policy", "trimtab plugin new replica-policy example.com/MyPlan"),
        Example(
            "Start an estimator elsewhere", "trimtab plugin new estimator example.com/my-peak --folder peak"
        ),
    ),
    "replay": (Example("Repeat recorded decisions", "trimtab replay web.json"),),
    "run": (
        Example("Decide about HPAs and write nothing", "trimtab run --dry-run --no-leader-elect"),
        Example(
            "Act on native HPAs too, in two namespaces",
            "trimtab run --native-hpas --watch-namespaces shop,search",
        ),
        Example("Size pods", "trimtab run --components recommender,updater,admission"),
    ),
    "shards": (Example("See which replica holds each shard", "trimtab shards"),),
    "simulate": (
        Example(
            "Backtest an HPA on recorded load",
            "trimtab simulate hpa.yaml --trace load.csv --request cpu=500m",
        ),
        Example(
            "Compare two HPAs",
            "trimtab simulate now.yaml new.yaml --trace load.csv --request cpu=500m",
        ),
        Example(
            "Compare a VPA with upstream's rules",
            "trimtab simulate vpa.yaml --trace load.csv --replicas 5 --request cpu=500m --compare=upstream",
        ),
    ),
    "top": (
        Example("List all autoscalers of the cluster", "trimtab top"),
        Example("List those of a team, again and again", "trimtab top -n shop -l team=web -w"),
        Example("With targets and messages", "trimtab top -o wide"),
    ),
    "trace": (
        Example(
            "Record a week of CPU",
            "trimtab trace --prometheus http://127.0.0.1:9090 --query 'cpu=sum(rate(cpu[5m]))' --since 7d",
        ),
    ),
    "up": (
        Example("Try Trimtab for a while", "trimtab up"),
        Example("See one story, an hour in a minute", "trimtab up --scenario to-zero --speed 60x"),
        Example("Try your own workload", "trimtab up -f app.yaml"),
        Example("See a thousand autoscalers", "trimtab up --many 1000"),
    ),
    "validate": (
        Example("Check files", "trimtab validate hpa.yaml vpa.yaml"),
        Example("Check what runs in a cluster", "kubectl get hpa,vpa -A -o yaml | trimtab validate -"),
    ),
    "version": (Example("Print the version", "trimtab version"),),
    "vpa-admission-controller": (
        Example("Run with upstream's flags", "trimtab vpa-admission-controller --register-webhook=false"),
    ),
    "vpa-recommender": (
        Example("Run with upstream's flags", "trimtab vpa-recommender --recommender-interval=1m0s"),
    ),
    "vpa-updater": (Example("Run with upstream's flags", "trimtab vpa-updater --min-replicas=1"),),
}
"""The examples of each command, by name."""


def epilog_of(command: str) -> str:
    """Return the examples as the end of a help text, which click does not wrap."""
    lines = [line for example in EXAMPLES[command] for line in (f"  # {example.does}", f"  {example.line}")]
    return "\b\nExamples:\n" + "\n".join(lines)
