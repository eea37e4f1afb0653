"""The HTTP/1.1 transport: our own connection pool on httptools.

    transport.HttpTransport    the client's view: concurrency, credentials, error messages
    pool.Pool                  idle and new connections, and when a request may be repeated
    connection.HttpConnection  one exchange at a time on one socket
    messages                   the bytes of a request; bytes in, response out; no socket
    tls, dialer                TLS on any event loop; addresses and proxies

For figures and the comparison with libraries see
docs/decisions/trimtab-has-its-own-http-client-and-few-dependencies.md.
"""

from trimtab.cluster.http.transport import HttpTransport

__all__ = ["HttpTransport"]
