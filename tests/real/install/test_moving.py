"""The steps of docs/move-from-native-hpa.md and docs/roll-back.md, on the real kube-apiserver."""

import subprocess
import sys

import pytest

pytestmark = [pytest.mark.real, pytest.mark.versions]

NATIVE = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: moving, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: moving}
  minReplicas: 2
  maxReplicas: 20
  metrics:
    - type: Resource
      resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}
"""


def convert(text, version):
    command = [sys.executable, "-c", "from trimtab.cli import main; main()", "convert", "--to", version, "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def test_there_and_back(installed, tmp_path):
    kubectl = installed.kubectl
    assert kubectl("apply", "-f", "-", stdin=NATIVE).returncode == 0
    live = kubectl("get", "hpa", "moving", "-n", "shop", "-o", "yaml").stdout
    file = tmp_path / "web.yaml"
    file.write_text(convert(live, "trimtab"))
    mode = "autoscaling.trimtab.dev/mode"
    tried = kubectl("annotate", "--local", "-f", str(file), f"{mode}=DryRun", "-o", "yaml").stdout
    applied = kubectl("apply", "--server-side", "-f", "-", stdin=tried)
    assert (applied.returncode, applied.stderr) == (0, "")
    assert kubectl("delete", "hpa", "moving", "-n", "shop").returncode == 0
    assert kubectl("annotate", "thpa", "moving", "-n", "shop", f"{mode}-").returncode == 0
    edit = '{"spec": {"selectionStrategy": "OwnerReference"}}'
    assert kubectl("patch", "thpa", "moving", "-n", "shop", "--type=merge", "-p", edit).returncode == 0

    ours = tmp_path / "thpa.yaml"
    ours.write_text(kubectl("get", "thpa", "-n", "shop", "-o", "yaml").stdout)
    back = convert(ours.read_text(), "v2")
    assert kubectl("delete", "-f", str(ours)).returncode == 0
    applied = kubectl("apply", "--server-side", "-f", "-", stdin=back)
    assert (applied.returncode, applied.stderr) == (0, "")
    kept = kubectl("get", "hpa", "moving", "-n", "shop", "-o", "yaml").stdout
    assert "autoscaling.trimtab.dev/selection-strategy: OwnerReference" in kept
    assert kubectl("delete", "hpa", "moving", "-n", "shop").returncode == 0
