"""A server that costs next to nothing, in a process of its own: `python -m bench._answering CERT KEY`.

It answers every request with the same 1.5 KB; `/watch/N` streams N events of 7 KB, one HTTP chunk each, as a
kube-apiserver does. It prints the two ports it listens on (plain, TLS) and ends with its standard input.
"""

import asyncio
import ssl
import sys

import httptools
import uvloop

from bench.cluster import pod_json

_BODY = b'{"kind":"HorizontalPodAutoscaler","pad":"' + b"x" * 1500 + b'"}'
_HEADERS = (
    b"Audit-Id: 4a1dd9f1-3a2e-4b8a-9d0c-2f4c7f0a8f7e\r\nCache-Control: no-cache, private\r\n"
    b"Content-Type: application/json\r\nX-Kubernetes-Pf-Flowschema-Uid: 0f2a3c1e-1d9e-4a69-b9a1-3a1f4a3b2c1d\r\n"
    b"X-Kubernetes-Pf-Prioritylevel-Uid: 7c1f2b3a-9d8e-4c6b-a5f4-e3d2c1b0a9f8\r\nDate: Mon, 16 Nov 2026 00:00:00 GMT\r\n"
)
_ANSWER = b"HTTP/1.1 200 OK\r\n" + _HEADERS + b"Content-Length: %d\r\n\r\n" % len(_BODY) + _BODY
_EVENT = b'{"type":"MODIFIED","object":' + pod_json(1, 7) + b"}\n"
_CHUNK = b"%x\r\n" % len(_EVENT) + _EVENT + b"\r\n"


class Answering(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport
        self.parser = httptools.HttpRequestParser(self)
        self.go_on = asyncio.Event()
        self.go_on.set()

    def data_received(self, data):
        self.parser.feed_data(data)

    def pause_writing(self):
        self.go_on.clear()

    def resume_writing(self):
        self.go_on.set()

    def on_url(self, url):
        self.url = url

    def on_message_complete(self):
        if self.url.startswith(b"/watch/"):
            self.task = asyncio.ensure_future(self.stream(int(self.url[7:])))
        else:
            self.transport.write(_ANSWER)

    async def stream(self, events):
        self.transport.write(b"HTTP/1.1 200 OK\r\n" + _HEADERS + b"Transfer-Encoding: chunked\r\n\r\n")
        for _ in range(events):
            self.transport.write(_CHUNK)
            await self.go_on.wait()
        self.transport.write(b"0\r\n\r\n")


async def main(certificate, key):
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    loop = asyncio.get_running_loop()
    plain = await loop.create_server(Answering, "127.0.0.1", 0)
    secure = await loop.create_server(Answering, "127.0.0.1", 0, ssl=tls)
    print(plain.sockets[0].getsockname()[1], secure.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(*sys.argv[1:]))
