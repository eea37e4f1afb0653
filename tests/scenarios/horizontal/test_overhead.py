"""The overhead of a sandbox is no part of what a pod requests, except in the settings of older Kubernetes."""

import pytest

from tests.support.clock import in_virtual_time
from tests.support.objects import cpu_metric, pod_spec


@pytest.mark.parametrize(("compat", "want"), [("", 100), ("kubernetes-1.36", 50)])
@in_virtual_time
async def test_a_sandboxed_pod_that_uses_its_whole_request_is_fully_used(stage, compat, want):
    """100m of 100m are 100 %. With an overhead of 100m they counted as 50 %, and the workload never grew."""
    await stage.bare_deployment("web", 1)
    own = {"resources": {"requests": {"cpu": "100m"}}, "overhead": {"cpu": "100m"}}
    await stage.pod("web-0", {"app": "web"}, pod_spec() | own)
    stage.use_cpu(web="100m")
    await stage.hpa("web", metrics=[cpu_metric(50)])
    async with stage.running(**({"compat": compat} if compat else {})) as actor:
        await stage.step(actor)
        current = (await stage.read_hpa("web"))["status"]["currentMetrics"][0]["resource"]["current"]
        assert current["averageUtilization"] == want
