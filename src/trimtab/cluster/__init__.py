"""The client of a Kubernetes API server: transport, caches, discovery, writes, leases.

    connection = load_connection(clock)                    address and credentials (`config`)
    client = Client(clock, HttpTransport(clock, connection))
    pods = Informer(client, PODS)                          a cache that follows the server; run `pods.run()`
    writer = client.fenced(elector)                        writes stop when the lease may be lost

Reading order: `resource`, `client`, `errors`, then one request: `sender` (fence, dry run, retries), `lanes` (what cannot
delay each other), `transport` (the interface; `in_process` has no socket), `http` (sockets and TLS), `codec` (responses
and lists). Then `config` (kubeconfig), `cache` (list and watch), `leases` (which replica decides), `discovery`, `scale`,
`events` (with `turns`), `foreign_answers` (a proxy in place of the API server).

Nothing is imported here, because most users of this package need no socket. What does not belong here: decisions. For the behaviour under faults see docs/decisions/caches-reject-older-versions-and-never-block-startup.md and
docs/decisions/retry-reads-and-verify-writes.md.
"""
