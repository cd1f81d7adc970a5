"""Replays the controllers' logs of finished runs into audit tables, and leaves what they say as `audit.json`.

python -m tests.jepsen.core.audit_replay FOLDER...    (of runs, or of whole stores)

Spark takes its time for every step, however small the logs are, so one session serves all runs, and one audit some.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from kquorum.cli.failures import CliError
from tests.jepsen.core.cluster import NODES_FOLDER
from tests.jepsen.core.members import Members
from tests.jepsen.core.store import TEST_FILE, runs

AUDIT_FILE: Final = "audit.json"
FORMAT: Final = 1
TOGETHER: Final = 10
"""Runs that are audited at once."""
Rows = dict[str, list[dict[str, Any]]]
"""Of a table, by source."""
_SMALL_BYTES = 1024 * 1024
_TABLES: Final = {
    "topics": (
        "topic_id",
        "topic_name",
        "partitions",
        "from_snapshot",
        "valid_from_offset",
        "valid_to_offset",
    ),
    "topics_history": ("topic_id", "topic_name", "change", "partitions", "valid_from_offset"),
    "configs_history": (
        "resource_type",
        "resource_name",
        "name",
        "value",
        "ended_by",
        "valid_from_offset",
        "valid_to_offset",
    ),
    "audit_notes": (
        "offset",
        "principal",
        "client_id",
        "api",
        "reason",
        "covered_from_offset",
        "covered_to_offset",
        "chain",
        "committed",
    ),
    "damage": ("file", "position", "offset", "reason"),
}


def replay(folders: Sequence[Path]) -> dict[Path, str]:
    """Writes each run's `audit.json`; answers those whose logs could not be audited, and why.

    Raises CliError where Spark cannot be started: without Java, say.
    """
    from kquorum.cli.commands.audit.spark import (
        quiet_spark,  # Spark takes a second to import, and most runs need none
    )
    from kquorum.spark_replay.session import LOCAL_MASTER

    failed: dict[Path, str] = {}
    with (
        tempfile.TemporaryDirectory(prefix="kquorum-jepsen-") as work,
        quiet_spark(master=LOCAL_MASTER, size_in_bytes=_SMALL_BYTES, keep_log_in=Path(work)) as spark,
    ):
        waiting = [list(folders[at : at + TOGETHER]) for at in range(0, len(folders), TOGETHER)]
        while waiting:
            batch = waiting.pop(0)
            spark.progress(f"auditing {batch[0]}" + (f" and {len(batch) - 1} more" if batch[1:] else ""))
            try:
                found = _audited(spark.session, batch, Path(tempfile.mkdtemp(dir=work)))
            except Exception as error:  # noqa: BLE001 - one run's logs must not keep the others from their audit
                if len(batch) > 1:
                    waiting += [[each] for each in batch]
                    continue
                words = str(error).splitlines()
                failed[batch[0]] = f"{type(error).__name__}: {words[0] if words else ''}"
                continue
            for folder, audit in found.items():
                _write(folder / AUDIT_FILE, audit)
    return failed


def _audited(session: Any, folders: Sequence[Path], out: Path) -> dict[Path, dict[str, Any]]:
    """One audit of the logs of all, each of whom is a cluster of its own: Spark's work is much the same for one."""
    from kquorum.spark_replay.audit import build
    from kquorum.spark_replay.audit_folder import open_audit
    from kquorum.spark_replay.checks.checking import check_audit

    logs = {folder: _logs_of(folder) for folder in folders}
    build(session, [log for each in logs.values() for log in each], out)
    tables = open_audit(session, out)
    report = check_audit(tables)
    report.findings.unpersist()
    rows = {name: _rows(out / name, columns) for name, columns in _TABLES.items()}
    found = {}
    for folder in folders:
        sources = [
            each for each in tables.manifest.sources if Path(each.files[0].path).is_relative_to(folder)
        ]
        assert len(sources) == len(logs[folder]), f"{folder} has {len(sources)} logs in its audit"
        found[folder] = _of_run(sources, report, rows)
    return found


def _logs_of(folder: Path) -> list[Path]:
    return [folder / NODES_FOLDER / str(node) / "data" for node in members_of(folder).quorum]


def _of_run(sources: Sequence[Any], report: Any, rows: Mapping[str, Rows]) -> dict[str, Any]:
    own = {each.source for each in sources}
    replicas = [_replicas(each) for each in report.replicas if own.issuperset(each.sources)]
    assert replicas, f"the logs of {sorted(own)} were not compared: do they name their cluster?"
    return {
        "format": FORMAT,
        "logs": [_log(each, rows) for each in sources],
        "violations": [
            asdict(first) | {"check": str(result.check)}
            for result in report.results
            if result.violations and result.source in own
            for first in result.first
        ],
        "replicas": replicas,
    }


def _log(source: Any, rows: Mapping[str, Rows]) -> dict[str, Any]:
    """One controller's log, with its rows of the tables."""
    return {
        "source": source.source,
        "node": source.member.node_id,
        "start_offset": source.start_offset,
        "end_offset": source.end_offset,
        **{name: by_source.get(source.source, []) for name, by_source in rows.items()},
    }


def _rows(table: Path, columns: Sequence[str]) -> Rows:
    import pyarrow.parquet as pq

    found: Rows = {}
    for row in pq.read_table(table, columns=["source", *columns]).to_pylist():
        found.setdefault(row.pop("source"), []).append(row)
    for rows in found.values():
        rows.sort(key=lambda row: [str(row[column]) for column in columns])
    return found


def _replicas(report: Any) -> dict[str, Any]:
    facts = report.facts
    return {
        "logs": list(report.sources),
        "not_compared": report.why_not,
        "agreed_below": None if facts is None else facts.agreed_below,
        "committed_below": None if report.mark is None else report.mark.at_least,
        "majority_below": None if report.mark is None else report.mark.majority_below,
        "violations": [asdict(each) for each in report.findings if each.is_violation],
        "lawful": [asdict(each) for each in report.findings if not each.is_violation],
    }


def members_of(folder: Path) -> Members:
    """Raises OSError, or ValueError for a folder that is no run's."""
    test = json.loads((folder / TEST_FILE).read_text(encoding="utf-8"))
    return Members(**{name: tuple(node_ids) for name, node_ids in test["members"].items()})


def _write(path: Path, value: Any) -> None:
    """Whole or not at all."""
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(value, indent=1, default=str) + "\n", encoding="utf-8")
    unfinished.replace(path)


def runs_in(folders: Iterable[Path]) -> list[Path]:
    """The runs at these paths, or in these stores; those that left no nodes' folders are passed over."""
    found = [
        folder
        for each in folders
        for folder in ([each] if (each / TEST_FILE).is_file() else [run.path for run in runs(each)])
    ]
    return [folder for folder in found if (folder / NODES_FOLDER).is_dir()]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.jepsen.core.audit_replay", description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER", help="of a run, or of a store")
    parser.add_argument("--again", action="store_true", help=f"also those which have an {AUDIT_FILE}")
    chosen = parser.parse_args()
    folders = runs_in(chosen.folders)
    if not folders:
        print(f"no run in {', '.join(map(str, chosen.folders))}", file=sys.stderr)
        return 2
    wanted = [folder for folder in folders if chosen.again or not (folder / AUDIT_FILE).exists()]
    try:
        failed = replay(wanted) if wanted else {}
    except CliError as error:
        print(f"no audit: {error}", file=sys.stderr)
        return 2
    for folder in folders:
        print(f"{folder}: {failed.get(folder, 'audited')}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
