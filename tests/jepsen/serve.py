"""Browse the runs of a store: python -m tests.jepsen.serve [--store store] [--port 8088].

Only this machine can ask: it listens on 127.0.0.1. It shows files of the store and nothing else, and changes none.
"""

import argparse
import errno
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from tests.jepsen.core.store import HISTORY_FILE, StoredRun, runs
from tests.jepsen.report.findings import verdict_of
from tests.jepsen.report.index_page import INDEX_FILE
from tests.jepsen.report.markup import link, page, table, text, verdict_badge
from tests.jepsen.report.timeline import TIMELINE_FILE

HOST = "127.0.0.1"
DEFAULT_PORT = 8088
_PAGES = (INDEX_FILE, TIMELINE_FILE)
_TYPES = {".png": "image/png", ".svg": "image/svg+xml"}
_TEXT_SUFFIXES = (".log", ".jsonl", ".json", ".edn", ".toml", ".txt", ".properties")
_PROBE_BYTES = 4096
_PART_BYTES = 1 << 18
# A page of a run may draw itself with its own script, and no page may ask anything of another place.
_POLICY = "default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'"
_PAGE_POLICY = f"{_POLICY}; script-src 'unsafe-inline'"


class StoreServer(ThreadingHTTPServer):
    """Raises OSError when the port is taken."""

    daemon_threads = True
    # With it, two of these could share a port on some systems.
    allow_reuse_port = False

    def __init__(self, store: Path, port: int) -> None:
        self.store = store.resolve()
        super().__init__((HOST, port), StoreHandler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that went away is nothing to tell."""
        if not isinstance(sys.exception(), ConnectionError):
            print(f"a request from {client_address} failed: {sys.exception()!r}", file=sys.stderr)


class StoreHandler(BaseHTTPRequestHandler):
    server: StoreServer

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is http.server's
        pass

    def _answer(self) -> None:
        asked = urlsplit(self.path).path
        try:
            if asked == "/":
                return self._send_page(runs_page(self.server.store))
            found = find(self.server.store, asked)
            if found is None:
                return self._send_page(_missing(asked), HTTPStatus.NOT_FOUND)
            if not found.is_dir():
                return self._send_file(found)
            if not asked.endswith("/"):
                return self._redirect(asked + "/")
            self._send_page(folder_page(found, asked))
        except ConnectionError:
            self.close_connection = True
        except OSError as error:
            reason = error.strerror or type(error).__name__
            self._send_page(page("unreadable", f"<p>Unreadable: {text(reason)}.</p>"), HTTPStatus.NOT_FOUND)

    def _send_page(self, html: str, status: HTTPStatus = HTTPStatus.OK) -> None:
        content = html.encode()
        self._head(status, "text/html; charset=utf-8", len(content))
        if self.command == "GET":
            self.wfile.write(content)

    def _send_file(self, path: Path) -> None:
        """As long as it was when asked: a log of a run under way grows."""
        with path.open("rb") as content:
            size = path.stat().st_size
            self._head(HTTPStatus.OK, content_type(path), size)
            if self.command == "GET":
                while size > 0 and (part := content.read(min(size, _PART_BYTES))):
                    self.wfile.write(part)
                    size -= len(part)
                if size:
                    self.close_connection = True

    def _redirect(self, to: str) -> None:
        self.send_response(HTTPStatus.MOVED_PERMANENTLY)
        # Quoted again and with one slash at its head: it never leads to another host.
        self.send_header("Location", "/" + quote(unquote(to).lstrip("/")))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _head(self, status: HTTPStatus, kind: str, size: int) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(size))
        self.send_header("Content-Security-Policy", _PAGE_POLICY if kind.startswith("text/html") else _POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()


def find(store: Path, asked: str) -> Path | None:
    """The file of a URL's path; None for what is not there, or not in the store when all links are followed."""
    name = unquote(asked).lstrip("/")
    if "\0" in name:
        return None
    path = (store / name).resolve()
    return path if path.is_relative_to(store) and path.exists() else None


def content_type(path: Path) -> str:
    """Only the pages that we write are pages; whatever else a run left is text, a picture, or bytes."""
    if path.name in _PAGES:
        return "text/html; charset=utf-8"
    if path.suffix in _TYPES:
        return _TYPES[path.suffix]
    with path.open("rb") as content:
        is_text = path.suffix in _TEXT_SUFFIXES or b"\0" not in content.read(_PROBE_BYTES)
    return "text/plain; charset=utf-8" if is_text else "application/octet-stream"


def runs_page(store: Path) -> str:
    found = runs(store)
    if not found:
        return page("runs", f"<h1>Runs</h1><p>{text(store)} holds no runs yet.</p>")
    heads = ("run (UTC)", "verdict", "workload", "nemesis", "nodes", "duration", "seed", "")
    rows = table(heads, (_run_row(run) for run in found))
    return page("runs", f"<h1>Runs in {text(store)}</h1>{rows}")


def _run_row(run: StoredRun) -> list[str]:
    test = run.test
    own = f"/{run.workload}/{run.path.name}/"
    nodes = f"{test.get('nodes', '?')} controllers, {test.get('brokers', '?')} brokers" if test else "?"
    start = own + INDEX_FILE if (run.path / INDEX_FILE).is_file() else own
    links = [link(own + name, name) for name in (TIMELINE_FILE, HISTORY_FILE) if (run.path / name).is_file()]
    return [
        link(start, run.path.name),
        verdict_badge(verdict_of(run.results)),
        text(test.get("workload", run.workload)),
        text(test.get("nemesis", "?")),
        text(nodes),
        text(f"{test['time_s']} s" if "time_s" in test else "?"),
        text(test.get("seed", "?")),
        " ".join([*links, link(own, "files")]),
    ]


def folder_page(folder: Path, asked: str) -> str:
    name = unquote(asked)
    rows = [
        [link("./" + each.name + ("/" if each.is_dir() else ""), each.name + ("/" if each.is_dir() else ""))]
        for each in sorted(folder.iterdir(), key=lambda path: (not path.is_dir(), path.name))
        if not each.name.startswith(".")
    ]
    return page(
        name, f"<h1>{text(name)}</h1><p>{link('../', 'up')} {link('/', 'all runs')}</p>{table((), rows)}"
    )


def _missing(asked: str) -> str:
    return page("not found", f"<p>The store has no {text(unquote(asked))}.</p><p>{link('/', 'all runs')}</p>")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.jepsen.serve", description="Browse the runs of a store."
    )
    parser.add_argument("--store", type=Path, default=Path("store"), help="folder of the runs (store)")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help=f"on {HOST} ({DEFAULT_PORT}; 0: any)")
    chosen = parser.parse_args(arguments)
    if not 0 <= chosen.port <= 65535:
        parser.error("--port must be 0 to 65535")
    try:
        server = StoreServer(chosen.store, chosen.port)
    except OSError as error:
        why = "is in use: choose another with --port" if error.errno == errno.EADDRINUSE else error.strerror
        print(f"port {chosen.port} of {HOST} {why}", file=sys.stderr)
        return 1
    with server:
        try:
            print(
                f"http://{HOST}:{server.server_address[1]}/ shows {server.store}; Ctrl-C ends it", flush=True
            )
            server.serve_forever()
        except KeyboardInterrupt:
            print("\nended")
    return 0


if __name__ == "__main__":
    sys.exit(main())
