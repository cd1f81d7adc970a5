"""How long a controller takes from its start to its first commit, from a snapshot and from the log alone.

    python -m benchmarks.startup [--partitions 100000] [--records 100000] [--times 3] [--mib 512] [--fast] [--json]

One real controller, the sole voter, a process of `kquorum start`; its folder was filled before. Each start counts from
the call of the process to the line that says it is ready, and to the first write that it acknowledges (a record): then
it has read everything, won its election and committed. It is killed afterwards, and its folder is put back.

- `empty`: a formatted folder whose node has led once, which is what a process and an election cost;
- `snapshot and log`: a snapshot of the partitions, and a log that begins there, with the records (changes of
  partitions, ten a batch);
- `log alone`: the partitions (thousand a batch, lz4) and the records in a log from offset 0.

`open` is FileLog's recovery alone, in a process of its own, of a log of 4 KiB batches: each is checked, indexes and
epochs are rebuilt. Its limit is reading the file and a CRC-32C of each 4 KiB, in the same process before.
Everything is in the page cache: the disk is no part of it. Both are seconds of processor time, as is `processor s` of a
start; the other times are those of a clock, and mind what else the machine does.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from crc32c import crc32c

from benchmarks._quorum_writer import Writer
from benchmarks._report import hardware, percentile, print_result
from benchmarks._startup_folders import (
    RECORDS_OF_CHANGE,
    RECORDS_OF_CREATE,
    append,
    base_folder,
    change_records,
    partition_records,
    replace_folder,
    take_snapshot,
)
from kquorum.cli.output import error_console
from kquorum.raft.adapters.file_log import FOLDER_NAME, FileLog
from kquorum.wire.log_batch import build_batch
from tests.support.cluster import CLUSTER_ID, PROJECT_ROOT, Cluster

NODE_ID = 1
MIB = 1024 * 1024
OPEN_BATCH_BYTES = 4096
WRITE_TIMEOUT_S = 600.0


def start(cluster: Cluster) -> dict[str, float]:
    """Start the node once and kill it; seconds, and its largest resident memory in MiB."""
    begin_s = time.perf_counter()
    cluster.start_node(NODE_ID)
    ready_s = time.perf_counter() - begin_s
    with Writer({NODE_ID: ("127.0.0.1", cluster.ports[NODE_ID])}, CLUSTER_ID) as writer:
        first = writer.first(lambda _: True, begin_s, WRITE_TIMEOUT_S)
        commit_s = first.at_s - begin_s
    pid = only_child()
    peak, busy_s = peak_mib(pid), processor_s(pid)
    cluster.kill(NODE_ID)
    return {"ready_s": ready_s, "first_commit_s": commit_s, "processor_s": busy_s, "peak_mib": peak}


def only_child() -> str:
    """The process id of the node, which is the only process that this thread has started."""
    (pid,) = Path("/proc/thread-self/children").read_text().split()
    return pid


def processor_s(pid: str) -> float:
    """What a process has used of the processors, in user and system mode."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_mib(pid: str) -> float:
    """The high-water mark of a process's resident memory."""
    return memory_mib(pid, "VmHWM")


def memory_mib(pid: str, field: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (found,) = (line.split()[1] for line in lines if line.startswith(f"{field}:"))
    return int(found) / 1024


def row_of(name: str, folder: Path, starts: list[dict[str, float]]) -> dict[str, object]:
    files = list((folder / FOLDER_NAME).iterdir())
    return {
        "folder": name,
        "log_mib": sum(path.stat().st_size for path in files if path.suffix == ".log") / MIB,
        "snapshot_mib": sum(path.stat().st_size for path in files if path.suffix == ".checkpoint") / MIB,
        "ready_s": percentile([each["ready_s"] for each in starts], 50),
        "first_commit_s": percentile([each["first_commit_s"] for each in starts], 50),
        "first_commit_max_s": max(each["first_commit_s"] for each in starts),
        "processor_s": percentile([each["processor_s"] for each in starts], 50),
        "peak_mib": max(each["peak_mib"] for each in starts),
    }


def measure_starts(
    folder: Path, options: argparse.Namespace, say: Callable[[str], None]
) -> list[dict[str, object]]:
    """The cases take turns."""
    cluster = Cluster(folder / "cluster", controllers=1, brokers=0)
    try:
        say(f"filling the folders: {options.partitions} partitions, {options.records} records")
        cases = dict(make_cases(folder, cluster, options))
        starts: dict[str, list[dict[str, float]]] = {name: [] for name in cases}
        for number in range(options.times):
            for name, case in cases.items():
                say(f"start {number + 1} of {options.times}: {name}")
                replace_folder(cluster.data_folder(NODE_ID), case)
                starts[name].append(start(cluster))
    finally:
        cluster.destroy()
    return [row_of(name, case, starts[name]) for name, case in cases.items()]


def make_cases(folder: Path, cluster: Cluster, options: argparse.Namespace) -> Iterator[tuple[str, Path]]:
    data_folder = base_folder(cluster, NODE_ID)
    yield "empty", keep(data_folder, folder / "empty")
    append(data_folder, partition_records(options.partitions), RECORDS_OF_CREATE)
    with_snapshot = keep(data_folder, folder / "with-snapshot")
    take_snapshot(with_snapshot)
    for each in (with_snapshot, data_folder):
        append(each, change_records(options.records, options.partitions), RECORDS_OF_CHANGE)
    yield "snapshot and log", with_snapshot
    yield "log alone", keep(data_folder, folder / "log-alone")


def keep(data_folder: Path, copy: Path) -> Path:
    shutil.copytree(data_folder, copy)
    return copy


# Opening a log


def make_log(folder: Path, mib: int) -> None:
    log = FileLog(folder)
    value = bytes(OPEN_BATCH_BYTES - 72)
    for offset in range(mib * MIB // OPEN_BATCH_BYTES):
        log.append([build_batch(offset, 1, 1_790_000_000_000 + offset, [(None, value)])])
    log.close()


def open_once(folder: Path) -> dict[str, float]:
    """In this process: the limit, then the log; seconds of processor time, which other work hardly
    lengthens, and MiB."""
    begin_s = time.process_time()
    for path in sorted(folder.glob("*.log")):
        with path.open("rb", buffering=0) as file:
            while chunk := file.read(OPEN_BATCH_BYTES):
                crc32c(chunk)
    bare_s = time.process_time() - begin_s
    begin_s = time.process_time()
    log = FileLog(folder)
    open_s = time.process_time() - begin_s
    log.close()
    return {
        "bare_s": bare_s,
        "open_s": open_s,
        "peak_mib": peak_mib("self"),
        "own_mib": memory_mib("self", "RssAnon"),
    }


def measure_open(
    folder: Path, options: argparse.Namespace, say: Callable[[str], None]
) -> list[dict[str, object]]:
    say(f"filling a log of {options.mib} MiB")
    make_log(folder, options.mib)
    command = [sys.executable, "-m", "benchmarks.startup", "--open", str(folder)]
    runs: list[dict[str, float]] = []
    for number in range(options.times):
        say(f"open {number + 1} of {options.times}")
        done = subprocess.run(command, cwd=PROJECT_ROOT, check=True, capture_output=True, text=True)
        runs.append(json.loads(done.stdout))
    gib = options.mib / 1024
    open_s = percentile([each["open_s"] for each in runs], 50)
    return [
        {
            "log_mib": options.mib,
            "open_s": open_s,
            "open_s_per_gib": open_s / gib,
            "bare_s_per_gib": percentile([each["bare_s"] for each in runs], 50) / gib,
            "times_the_limit": percentile([each["open_s"] / each["bare_s"] for each in runs], 50),
            "peak_mib": max(each["peak_mib"] for each in runs),
            "without_the_mapped_log_mib": max(each["own_mib"] for each in runs),
        }
    ]


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--partitions", type=int, default=100_000, help="in the snapshot")
    parser.add_argument("--records", type=int, default=100_000, help="in the log behind it")
    parser.add_argument("--times", type=int, default=3, help="each is started or opened so often")
    parser.add_argument("--mib", type=int, default=512, help="of the log that is only opened")
    parser.add_argument("--fast", action="store_true", help="small ones, once: to see that all works")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    parser.add_argument("--open", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if min(options.partitions, options.records, options.times, options.mib) < 1:
        parser.error("every number must be at least 1")
    if options.fast:
        options.partitions, options.records, options.times, options.mib = 2_000, 2_000, 1, 8
    return options


def main() -> None:
    options, machine = options_of(), hardware()
    if options.open is not None:
        print(json.dumps(open_once(options.open)))
        return
    console = error_console()
    tables: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory(prefix="kquorum-bench-") as folder:
        tables["start of a controller"] = measure_starts(Path(folder), options, console.print)
        tables["open of a log"] = measure_open(Path(folder) / FOLDER_NAME, options, console.print)
    settings = {name: getattr(options, name) for name in ("partitions", "records", "times")}
    print_result("startup", machine, settings, tables, as_json=options.json)


if __name__ == "__main__":
    main()
