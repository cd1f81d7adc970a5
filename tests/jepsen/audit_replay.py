"""Replays the controllers' logs of finished runs into audit tables, and leaves what they say as `audit.json`.

python -m tests.jepsen.audit_replay FOLDER...    (of runs, or of whole stores)

Starting Spark is most of the time that this takes, so one session serves all of them.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from cli.errors import CliError
from tests.jepsen.cluster import NODES_FOLDER
from tests.jepsen.members import Members
from tests.jepsen.store import TEST_FILE, runs

AUDIT_FILE: Final = "audit.json"
FORMAT: Final = 1
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
    from cli.audit.spark import quiet_spark  # Spark takes a second to import, and most runs need none
    from spark_replay.session import LOCAL_MASTER

    failed: dict[Path, str] = {}
    with (
        tempfile.TemporaryDirectory(prefix="kquorum-jepsen-") as work,
        quiet_spark(master=LOCAL_MASTER, size_in_bytes=_SMALL_BYTES, keep_log_in=Path(work)) as spark,
    ):
        for number, folder in enumerate(folders):
            spark.progress(f"auditing {folder}")
            try:
                found = _audited(spark.session, folder, Path(work) / str(number))
            except Exception as error:  # noqa: BLE001 - one run's logs must not keep the others from their audit
                failed[folder] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
                continue
            _write(folder / AUDIT_FILE, found)
    return failed


def _audited(session: Any, folder: Path, out: Path) -> dict[str, Any]:
    from spark_replay.audit import build
    from spark_replay.audit_folder import open_audit
    from spark_replay.checks.checking import CheckRequest, check_audit

    logs = [folder / NODES_FOLDER / str(node) / "data" for node in members_of(folder).quorum]
    out.mkdir()
    build(session, logs, out)
    tables = open_audit(session, out)
    report = check_audit(tables, CheckRequest(one_cluster=True))
    report.findings.unpersist()
    return {
        "format": FORMAT,
        "logs": [_log(each, out) for each in tables.manifest.sources],
        "violations": [
            asdict(first) | {"check": str(result.check)}
            for result in report.results
            if result.violations
            for first in result.first
        ],
        "replicas": [_replicas(each) for each in report.replicas],
    }


def _log(source: Any, out: Path) -> dict[str, Any]:
    """One controller's log, with its rows of the tables."""
    return {
        "source": source.source,
        "node": source.member.node_id,
        "start_offset": source.start_offset,
        "end_offset": source.end_offset,
        **{name: _rows(out / name, source.source, columns) for name, columns in _TABLES.items()},
    }


def _rows(table: Path, source: str, columns: Sequence[str]) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    found = pq.read_table(table, filters=[("source", "=", source)]).select(columns).to_pylist()
    return sorted(found, key=lambda row: [str(row[column]) for column in columns])


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
    parser = argparse.ArgumentParser(prog="python -m tests.jepsen.audit_replay", description=__doc__)
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
