"""The lab in memory, for tests that need an API server and no sockets."""

from trimtab.cluster.transport.in_process import InProcessTransport
from trimtab.lab.apiserver.server import Server


def as_admin(server: Server) -> InProcessTransport:
    """Return the way to a lab for a client with all rights."""
    return InProcessTransport(server, headers={"authorization": f"Bearer {server.tokens.admin}"})
