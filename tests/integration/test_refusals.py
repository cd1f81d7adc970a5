"""What a node says, and how it ends, when it cannot start."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kquorum.cli.failures import ExitStatus
from kquorum.cli.processes import wait_until
from kquorum.raft.adapters.file_log import FOLDER_NAME
from kquorum.storage.meta_properties import MetaProperties, read_meta_properties, write_meta_properties
from kquorum.wire.log_batch import build_batch
from tests.support.cluster import CLUSTER_ID, PROJECT_ROOT, Cluster


@pytest.fixture
def small(tmp_path: Path) -> Cluster:
    """One controller and one broker, configured but not formatted."""
    cluster = Cluster(tmp_path, controllers=1, brokers=1)
    cluster.write_config()
    return cluster


def only_line(cluster: Cluster, node_id: int) -> str:
    """The one line that begins with `error:`; a traceback is a defect."""
    output = cluster.output(node_id)
    assert "Traceback" not in output, output
    (line,) = [line for line in output.splitlines() if line.startswith("error:")]
    return line


def test_a_folder_that_was_not_formatted(small: Cluster) -> None:
    assert small.start_and_wait_for_end(1) == ExitStatus.FOLDER_REFUSED
    line = only_line(small, 1)
    assert str(small.data_folder(1)) in line
    assert "kquorum format" in line


def test_a_folder_of_another_cluster(small: Cluster) -> None:
    small.format()
    foreign = "ZZZZZZZZZZZZZZZZZZZZZA"
    own = read_meta_properties(small.data_folder(1))
    changed = MetaProperties(cluster_id=foreign, node_id=1, directory_id=own.directory_id)
    write_meta_properties(small.data_folder(1), changed, 0)
    assert small.start_and_wait_for_end(1) == ExitStatus.FOLDER_REFUSED
    line = only_line(small, 1)
    assert foreign in line
    assert CLUSTER_ID in line
    assert str(small.data_folder(1) / "meta.properties") in line


def test_a_folder_of_another_node(small: Cluster) -> None:
    small.format()
    own = read_meta_properties(small.data_folder(1))
    changed = MetaProperties(cluster_id=CLUSTER_ID, node_id=7, directory_id=own.directory_id)
    write_meta_properties(small.data_folder(1), changed, 0)
    assert small.start_and_wait_for_end(1) == ExitStatus.FOLDER_REFUSED
    assert "node.id is 7" in only_line(small, 1)


def test_a_log_whose_beginning_is_in_a_snapshot(small: Cluster) -> None:
    """It must not go on from an empty state, and write records on top."""
    small.format()
    folder = small.data_folder(1) / FOLDER_NAME
    (folder / f"{100:020d}.log").write_bytes(build_batch(100, 1, 1, [(None, b"value")]).data)
    assert small.start_and_wait_for_end(1) == ExitStatus.DAMAGED_INPUT
    line = only_line(small, 1)
    assert "the log begins at offset 100, but no sound snapshot ends there" in line
    assert "restore the folder from a backup" in line


@pytest.mark.parametrize("node_id", [1, 101])
def test_a_port_that_is_in_use(small: Cluster, node_id: int) -> None:
    small.format()
    with socket.create_server(("127.0.0.1", small.ports[node_id])):
        assert small.start_and_wait_for_end(node_id) == ExitStatus.CANNOT_LISTEN
    line = only_line(small, node_id)
    assert f"127.0.0.1:{small.ports[node_id]}" in line
    assert "in use" in line


def test_a_second_process_on_the_same_folder(small: Cluster) -> None:
    with small:
        small.format()
        small.start_node(1)
        with Cluster(small.folder, controllers=1, brokers=1) as second:
            assert second.start_and_wait_for_end(1) == ExitStatus.FOLDER_REFUSED
            line = only_line(second, 1)
            assert str(small.data_folder(1)) in line
            assert "in use by process" in line


def test_a_broker_that_no_controller_takes(tmp_path: Path) -> None:
    quick = {"initial.broker.registration.timeout.ms": 500}
    with Cluster(tmp_path, controllers=1, brokers=1, overrides=quick) as cluster:
        cluster.format()
        assert cluster.start_and_wait_for_end(101) == ExitStatus.UNREACHABLE
        assert "broker 101 was not admitted" in only_line(cluster, 101)


def test_a_broker_that_stops_while_it_looks_for_a_controller(small: Cluster) -> None:
    with small:
        small.format()
        small.launch(101)
        assert wait_until(lambda: "starting as broker" in small.log_text(101), 30), small.tails()
        assert small.terminate(101) == ExitStatus.OK
        assert "Traceback" not in small.output(101) + small.log_text(101)


# `kquorum start`, which gets the signal that is named first, as often as is named next, before its event loop runs.
_SIGNALLED_EARLY = """
import signal, sys
import uvloop
from kquorum.cli.entry import main
number, times = int(sys.argv.pop(1)), int(sys.argv.pop(1))
run = uvloop.run
def run_signalled(coroutine):
    for _ in range(times):
        signal.raise_signal(number)
    return run(coroutine)
uvloop.run = run_signalled
main()
"""


def _start_signalled_early(
    cluster: Cluster, number: signal.Signals, times: int
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-c", _SIGNALLED_EARLY, str(number.value), str(times), "start"]
    command += ["--config", str(cluster.config_path), "--node", "1"]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT_ROOT)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_node_that_stops_before_its_event_loop_runs(small: Cluster, number: signal.Signals) -> None:
    small.format()
    ended = _start_signalled_early(small, number, 1)
    assert (ended.returncode, ended.stdout) == (ExitStatus.OK, "")
    (line,) = ended.stderr.splitlines()
    assert line.endswith(f"stopping after {number.name}")
    assert small.log_text(1).rstrip().endswith("stopped")


def test_a_second_signal_ends_a_node_at_once_before_its_event_loop_runs(small: Cluster) -> None:
    small.format()
    ended = _start_signalled_early(small, signal.SIGTERM, 2)
    assert ended.returncode == 128 + signal.SIGTERM
    assert "Traceback" not in ended.stdout + ended.stderr


@pytest.mark.slow
def test_assertions_switched_off(small: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONOPTIMIZE", "1")
    cluster = Cluster(small.folder, controllers=1, brokers=0)
    cluster.write_config()
    cluster.format()
    assert cluster.start_and_wait_for_end(1) == ExitStatus.USAGE
    assert "python -O" in only_line(cluster, 1)


def test_a_log_that_is_damaged_in_its_midst(small: Cluster) -> None:
    with small:
        segment = _written_segment(small)
        content = bytearray(segment.read_bytes())
        content[80] ^= 0xFF
        segment.write_bytes(content)
        assert small.start_and_wait_for_end(1) == ExitStatus.DAMAGED_INPUT
    line = only_line(small, 1)
    assert str(segment) in line
    assert "nothing was changed" in line
    assert segment.read_bytes() == bytes(content)


def test_a_torn_end_is_cut_and_the_node_goes_on(small: Cluster) -> None:
    with small:
        segment = _written_segment(small)
        whole = segment.stat().st_size
        with segment.open("ab") as file:
            file.write(segment.read_bytes()[:40])
        small.start_node(1)
        assert small.quorum().leader_id == 1
        assert "40 bytes of a torn write" in small.log_text(1)
        assert small.terminate(1) == ExitStatus.OK
        assert segment.stat().st_size > whole


def _written_segment(cluster: Cluster) -> Path:
    """The first segment of a controller that has run and stopped."""
    cluster.format()
    cluster.start_node(1)
    assert wait_until(lambda: cluster.quorum().high_watermark > 5, 20), cluster.tails()
    assert cluster.terminate(1) == ExitStatus.OK
    return cluster.data_folder(1) / "__cluster_metadata-0" / f"{0:020}.log"
