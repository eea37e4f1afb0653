"""A whole cluster in one object: API server, controllers, nodes and load, in real or virtual time.

    async with EmbeddedCluster(clock, seed=1) as cluster:
        await cluster.apply(manifest)
        cluster.use_cpu(web="40m")
        await cluster.settle()
        pods = await cluster.client.list(PODS)

Under a `VirtualClock` nothing sleeps, and two runs with the same seed end with the same bytes.
"""

from trimtab.cluster.watch import WatchPace

#: In one process a watch cannot silently stall, so it need not be renewed often.
PACE = WatchPace(shortest=1700.0, longest=1790.0)
SETTLE_SECONDS = 3600.0
_LOOK_SECONDS = 0.5
