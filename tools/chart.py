"""Write the Helm chart and the monitoring files anew: `python -m tools.chart` (a test says when it is due)."""

from pathlib import Path

from trimtab.install import chart_files
from trimtab.install.kube_state_metrics import config_text

ROOT = Path(__file__).parents[1]
CHART = ROOT / "charts" / "trimtab"
STATE_METRICS = ROOT / "examples" / "monitoring" / "kube-state-metrics.yaml"


def main() -> None:
    """Write every file of the chart and remove those that are no longer made."""
    files = chart_files()
    for name, text in files.items():
        path = CHART / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for path in CHART.rglob("*"):
        if path.is_file() and str(path.relative_to(CHART)) not in files:
            path.unlink()
    STATE_METRICS.parent.mkdir(parents=True, exist_ok=True)
    STATE_METRICS.write_text(config_text())
    print(
        f"{len(files)} files in {CHART.relative_to(Path.cwd()) if CHART.is_relative_to(Path.cwd()) else CHART}"
    )


if __name__ == "__main__":
    main()
