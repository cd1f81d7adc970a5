"""Browsing the store over real HTTP: what is shown, and what never is."""

import http.client
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.jepsen.checkers.verdicts import VALID_KEY, Verdict
from tests.jepsen.core.store import RunFolder
from tests.jepsen.serve import HOST, StoreServer, main

ROOT = Path(__file__).resolve().parents[3]
SECRET = "not for you"
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "secret.txt").write_text(SECRET)
    made = tmp_path / "store"
    folders = [RunFolder(made, "topics-set") for _ in range(4)]
    for folder, verdict in zip(folders, (*Verdict, None), strict=True):
        folder.write_test({"workload": "topics-set", "nemesis": HOSTILE, "nodes": 3, "brokers": 3, "seed": 7})
        if verdict is not None:
            folder.write_results({VALID_KEY: verdict})
    run = folders[-1].path
    (run / "index.html").write_text("<p>the index</p>")
    (run / "history.jsonl").write_text('{"value":"<b>"}\n')
    (run / "output.log").write_text("log")
    (run / "picture.png").write_bytes(b"\x89PNG\0")
    (run / "raw.bin").write_bytes(b"\0\1")
    (run / "notes.html").write_text(HOSTILE)
    (run / "a b#?%<i>.txt").write_text("odd")
    (run / "out").symlink_to(tmp_path / "secret.txt")
    return made


@pytest.fixture
def server(store: Path) -> Iterator[StoreServer]:
    with StoreServer(store, 0) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def get(server: StoreServer, path: str, method: str = "GET") -> tuple[int, str, str]:
    """Status, kind, content; the path is sent as it is."""
    connection = http.client.HTTPConnection(HOST, server.server_address[1], timeout=10)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        kind = response.getheader("Location") or response.getheader("Content-Type") or ""
        return response.status, kind, response.read().decode(errors="replace")
    finally:
        connection.close()


def test_all_runs_are_listed_newest_first_with_their_verdicts(server: StoreServer) -> None:
    status, _, shown = get(server, "/")
    places = [shown.index(f">{word}<") for word in ("incomplete", "unknown", "invalid", "valid")]
    assert status == 200
    assert places == sorted(places)
    assert "3 controllers, 3 brokers" in shown


def test_names_from_a_run_are_no_markup(server: StoreServer) -> None:
    assert HOSTILE not in get(server, "/")[2]
    assert "&lt;script&gt;" in get(server, "/")[2]
    assert "<i>" not in get(server, "/latest/")[2]
    assert "<script" not in get(server, "/%3Cscript%3E")[2]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("history.jsonl", "text/plain; charset=utf-8"),
        ("output.log", "text/plain; charset=utf-8"),
        ("index.html", "text/html; charset=utf-8"),
        ("notes.html", "text/plain; charset=utf-8"),
        ("picture.png", "image/png"),
        ("raw.bin", "application/octet-stream"),
        ("a%20b%23%3F%25%3Ci%3E.txt", "text/plain; charset=utf-8"),
    ],
)
def test_files_are_shown_as_what_they_are(server: StoreServer, name: str, kind: str) -> None:
    assert get(server, f"/latest/{name}")[:2] == (200, kind)
    assert f"{name}" in get(server, "/latest/")[2]


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/topics-set/../../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "//etc/passwd",
        "/%2fetc/passwd",
        "/latest/out",
        "/nowhere",
        "/latest/output.log/",
        "/latest/\\..\\..",
        "/a%00b",
        "/" + "x" * 5000,
    ],
)
def test_nothing_outside_of_the_store_is_shown(server: StoreServer, path: str) -> None:
    status, _, shown = get(server, path)
    assert SECRET not in shown
    assert "root:" not in shown
    assert status == 404 or path == "/latest/output.log/"


def test_a_folder_has_a_slash_at_its_end(server: StoreServer) -> None:
    assert get(server, "/topics-set")[:2] == (301, "/topics-set/")
    assert get(server, "//topics-set")[:2] == (301, "/topics-set/")


def test_head_answers_without_content(server: StoreServer) -> None:
    assert get(server, "/latest/output.log", "HEAD") == (200, "text/plain; charset=utf-8", "")
    assert get(server, "/", "POST")[0] == 501


def test_it_listens_on_this_machine_alone(server: StoreServer) -> None:
    assert server.server_address[0] == "127.0.0.1"


def test_an_empty_store_says_so(tmp_path: Path) -> None:
    from tests.jepsen.serve import runs_page

    assert "holds no runs yet" in runs_page(tmp_path / "nowhere")


def test_a_port_in_use_is_one_clear_line(server: StoreServer, capsys: pytest.CaptureFixture[str]) -> None:
    port = server.server_address[1]
    assert main(["--port", str(port)]) == 1
    assert capsys.readouterr().err == f"port {port} of {HOST} is in use: choose another with --port\n"


def test_ctrl_c_ends_it_cleanly(store: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.jepsen.serve", "--store", str(store), "--port", "0"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert "Ctrl-C ends it" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=20)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, rest.strip()) == (0, "ended")
