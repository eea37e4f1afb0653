"""The transport over HTTP/1.1: our own pool of connections on httptools, without a client library in between.

    transport.HttpTransport    what the client sees: turns, credentials, words for what went wrong
    pool.Pool                  kept connections, new ones, and when a request may be sent a second time
    connection.HttpConnection  one exchange at a time on one socket
    answers.AnswerParser       bytes in, one answer out; knows no socket
    tls, dialing, requests     TLS over any loop's sockets; addresses and proxies; the bytes of a request
    watchdog.Watchdog          one timer for all deadlines

Decision 0035 has the figures and says why it is not a library.
"""

from trimtab.cluster.http.transport import HttpTransport

__all__ = ["HttpTransport"]
