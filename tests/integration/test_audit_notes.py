"""A running cluster writes author and reason of each change into the log; verification finds a changed note."""

import json
from pathlib import Path
from typing import Any

import pytest

from kquorum.cli.failures import ExitStatus
from kquorum.cli.main import run
from kquorum.wire.record_batch import check_batch, read_records, write_batch
from tests.support.cluster import Cluster

METADATA_LOG = "__cluster_metadata-0"


def notes_in(capsys: pytest.CaptureFixture[str], folder: Path) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert run(["log", "dump", str(folder), "--json"]) == ExitStatus.OK
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [row["payload"]["audit_note"] for row in rows if "audit_note" in (row.get("payload") or {})]


def forge(log: Path, before: bytes, after: bytes) -> int:
    """Put other words of the same length into the first batch that holds some, with a right checksum; its offset."""
    data, position = bytearray(log.read_bytes()), 0
    while True:
        header = check_batch(data, position)
        records = read_records(data, position, header)
        if any(before in (record.value or b"") for record in records):
            break
        position += header.size_in_bytes
    assert len(before) == len(after)
    pairs = [(record.key, (record.value or b"").replace(before, after)) for record in records]
    batch = write_batch(
        base_offset=header.base_offset,
        leader_epoch=header.partition_leader_epoch,
        timestamp_ms=header.max_timestamp_ms,
        records=pairs,
        codec=header.codec,
    )
    data[position : position + header.size_in_bytes] = batch
    log.write_bytes(bytes(data))
    return header.base_offset


def test_the_reason_given_on_the_command_line_stands_in_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Cluster(tmp_path, controllers=1, brokers=1) as cluster:
        cluster.start()
        broker = cluster.address(101) if 101 in cluster.node_ids else cluster.address(max(cluster.node_ids))
        at = ["--bootstrap-server", broker]
        assert run(["topics", "create", "orders", "-p", "2", "-r", "1", "--reason", "spring sale", *at]) == 0
        assert run(["topics", "delete", "orders", "--reason", "sale\nis over", *at]) == 0
        assert run(["topics", "create", "quiet", "-p", "1", "-r", "1", *at]) == 0
        assert cluster.terminate(min(cluster.node_ids)) == 0
        folder = cluster.data_folder(min(cluster.node_ids)) / METADATA_LOG
        notes = notes_in(capsys, folder)
        assert [(note["reason"], note["operator_reason"]) for note in notes] == [
            ("create topics: orders", "spring sale"),
            ("delete topics: orders", "sale is over"),
            ("create topics: quiet", ""),
        ]
        assert {note["client_id"] for note in notes} == {"kquorum-cli"}
        assert run(["log", "verify", str(folder)]) == ExitStatus.OK
        log = next(path for path in sorted(folder.glob("*.log")) if path.stat().st_size)
        offset = forge(log, b"spring sale", b"autumn sale")
        capsys.readouterr()
        assert run(["log", "verify", str(folder)]) == ExitStatus.FAILED
        said = " ".join(capsys.readouterr().out.split())
        assert f"not the hash of the note at offset {offset}" in said


def test_a_reason_of_nothing_or_too_much_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for reason, words in ((" \n", "there is nothing in it"), ("x" * 501, "501 characters")):
        command = ["topics", "delete", "a", "--reason", reason, "--bootstrap-server", "127.0.0.1:1"]
        assert run(command) == ExitStatus.USAGE
        assert words in " ".join(capsys.readouterr().err.split())
