"""A folder of audit tables from elsewhere: the command says in one line what is wrong with it, and no code is loaded
that the folder names."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kquorum.cli.commands.audit.answers import _csv_cell
from kquorum.spark_replay.audit_manifest import MANIFEST as AUDIT_MANIFEST
from kquorum.spark_replay.audit_manifest import (
    AuditedSource,
    AuditManifest,
    NoAudit,
    read_manifest,
    table_folder,
    write_manifest,
)
from kquorum.spark_replay.decode.bases import StateBase
from kquorum.spark_replay.decode.members import Member
from kquorum.spark_replay.decode.sources import FileKind, LogFile

WRONG: list[object] = ["text", -2, 1.5, None, [], {}, True, 2**70, [[]], {"a": 1}]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Of everything in the JSON."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield (*path, key)
        yield from places(each, (*path, key))


def with_value(content: Any, path: tuple[Any, ...], value: object) -> Any:
    changed = json.loads(json.dumps(content))
    at = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return changed


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    file = LogFile(
        path="/log/0.log",
        name="0.log",
        source="node-1",
        kind=FileKind.LOG,
        size_in_bytes=100,
        base_offset=0,
    )
    source = AuditedSource(
        source="node-1",
        files=(file,),
        member=Member(cluster_id="a", node_id=1),
        base=StateBase(source="node-1", snapshot=None, from_offset=0),
        start_offset=0,
        end_offset=10,
    )
    write_manifest(
        tmp_path, AuditManifest(inputs=("/log",), made_ms=1, sources=(source,), rows={"topics": 1})
    )
    return tmp_path / AUDIT_MANIFEST


# Of the wrong values, those that a place takes: texts, lists that may be empty, and what need not be known.
TAKEN: dict[str, list[object]] = {
    "format": [True],  # equals 1
    "inputs": ["text", [], {}, {"a": 1}],  # becomes a tuple of texts
    "inputs.0": ["text"],
    "rows": [{}, {"a": 1}],
    "sources": [[], {}],
    "sources.0.source": ["text"],
    "sources.0.files": [[], {}],
    "sources.0.files.0.path": ["text"],
    "sources.0.files.0.name": ["text"],
    "sources.0.files.0.source": ["text"],
    "sources.0.files.0.base_offset": [None],
    "sources.0.files.0.end_offset": [None],
    "sources.0.files.0.epoch": [None],
    "sources.0.member": [{}],
    "sources.0.member.cluster_id": ["text", None],
    "sources.0.member.node_id": [None],
    "sources.0.member.directory_id": ["text", None],
    "sources.0.member.leader_epoch": [None],
    "sources.0.member.leader_id": [None],
    "sources.0.base.source": ["text"],
    "sources.0.base.snapshot": ["text", None],
    "sources.0.start_offset": [None],
    "sources.0.end_offset": [None],
}


def test_a_manifest_with_wrong_values_is_refused_without_a_traceback(manifest: Path) -> None:
    content = json.loads(manifest.read_text())
    taken: dict[str, list[object]] = {}
    for path in places(content):
        for value in WRONG:
            manifest.write_text(json.dumps(with_value(content, path, value)))
            try:
                read_manifest(manifest.parent)
            except NoAudit:
                continue
            taken.setdefault(".".join(map(str, path)), []).append(value)
    assert taken == TAKEN


@pytest.mark.parametrize("name", ["jdbc", "binaryFile", "org.example.Evil", "", "PARQUET"])
def test_a_manifest_does_not_choose_what_spark_loads(manifest: Path, name: str) -> None:
    content = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**content, "table_format": name}))
    with pytest.raises(NoAudit, match="table_format"):
        read_manifest(manifest.parent)


def test_deep_json_is_reported(manifest: Path) -> None:
    manifest.write_text("[" * 100_000)
    with pytest.raises(NoAudit):
        read_manifest(manifest.parent)


@pytest.mark.parametrize(
    "start", ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20"]
)
def test_no_cell_of_a_csv_file_is_a_formula(start: str) -> None:
    """A spreadsheet runs a cell that begins so; the full-width ones are what some take for the others."""
    formula = f"{start}cmd|' /C calc'!A0"
    for value in (formula, [formula, "x"]):
        assert _csv_cell(value).startswith("'")
    assert _csv_cell(-5) == "-5", "a number is one"
    assert _csv_cell("orders") == "orders"


SESSION = """
import sys
from pathlib import Path
from kquorum.spark_replay.session import start_session
spark = start_session(Path(sys.argv[1]), master="local[1]", small=True)
spark.range(10).repartition(2).count()
gateway = spark.sparkContext._gateway
print(gateway.proc.pid)
print(gateway.gateway_parameters.port, flush=True)
sys.stdin.readline()
spark.stop()
"""


def listeners_of(pid: int) -> set[str]:
    """The addresses, as the kernel writes them, on which this process listens."""
    inodes = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        target = str(descriptor.readlink()) if descriptor.is_symlink() else ""
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            parts = line.split()
            if parts[3] == "0A" and parts[9] in inodes:
                found.add(parts[1])
    return found


LOOPBACK = ("0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000")


@pytest.mark.spark
@pytest.mark.slow
def test_spark_listens_on_loopback_alone_and_its_gateway_wants_a_token(tmp_path: Path) -> None:
    """py4j runs any Java that it is asked for, so that another user of this machine must not reach it."""
    session = subprocess.Popen(
        [sys.executable, "-c", SESSION, tmp_path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert session.stdin is not None
    assert session.stdout is not None
    try:
        pid, port = int(session.stdout.readline()), int(session.stdout.readline())
        addresses = listeners_of(pid)
        assert len(addresses) >= 2, "the gateway and the block manager at least"
        assert {each.partition(":")[0] for each in addresses} <= set(LOOPBACK), addresses
        with socket.create_connection(("127.0.0.1", port), timeout=30) as peer:
            peer.sendall(b"r\nu\njava.lang.Runtime\ne\n")
            answer = peer.recv(1_000)
        assert not answer.startswith(b"!y"), answer
        for line in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
            assert b"secret" not in line.lower(), "every user sees the command line"
        assert Path(f"/proc/{pid}/environ").stat().st_mode & 0o077 == 0
    finally:
        session.communicate("\n", timeout=120)


def test_a_table_that_is_a_link_out_of_the_folder_is_not_read(tmp_path: Path) -> None:
    """Its writer chooses where it leads: to tables of the operator's elsewhere."""
    private, audit = tmp_path / "private", tmp_path / "audit"
    for folder in (private, audit):
        (folder / "records").mkdir(parents=True)
    (audit / "in-use" / "records").mkdir(parents=True)
    assert table_folder(audit, "records") == audit / "records"
    (audit / "records").rmdir()
    (audit / "records").symlink_to(audit / "in-use" / "records")
    assert table_folder(audit, "records") == audit / "in-use" / "records", "a stream swings such links over"
    (audit / "in-use" / "records" / "source=a").symlink_to(private)
    with pytest.raises(NoAudit, match="source=a is a symbolic link; it is not followed"):
        table_folder(audit, "records")
    (audit / "records").unlink()
    (audit / "records").symlink_to(private / "records")
    with pytest.raises(NoAudit, match="outside the audit; it is not followed"):
        table_folder(audit, "records")
