"""A small API server on loopback for commands that need one, and its kubeconfig."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@contextmanager
def refusing(code: int, reason: str, answers: Mapping[str, object] = {}) -> Iterator[int]:
    """Serve an API server that refuses every request but some, and yield its port."""

    class Refusing(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status = {
                "kind": "Status",
                "status": "Failure",
                "message": reason,
                "reason": reason,
                "code": code,
            }
            known = answers.get(self.path.partition("?")[0])
            body = json.dumps(known or status).encode()
            self.send_response(200 if known else code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with _served(Refusing) as port:
        yield port


@contextmanager
def answering(code: int, content_type: str, body: str, headers: Mapping[str, str] = {}) -> Iterator[int]:
    """Serve a program that gives the same answer to everything, as a proxy in front of a cluster, and yield its port."""

    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(code)
            for name, value in {**headers, "Content-Type": content_type}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with _served(Answering) as port:
        yield port


@contextmanager
def _served(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def kubeconfig(folder: Path, port: int) -> str:
    file = folder / "kubeconfig"
    file.write_text(
        json.dumps(
            {
                "current-context": "it",
                "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
                "clusters": [{"name": "it", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
                "users": [{"name": "it", "user": {"token": "wrong"}}],
            }
        )
    )
    return str(file)
