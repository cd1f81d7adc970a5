"""`log verify` of a broker's whole log directory: all partitions, and the metadata log that may lie beside them."""

from collections.abc import Sequence
from pathlib import Path

from kquorum.cli.commands.log.partition_log import (
    VERDICTS,
    PartitionCheck,
    segment_files,
    show_findings_of,
)
from kquorum.cli.commands.log.verify import byte_progress, log_json, show_logs, status_of_logs, verified_logs
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.cli.output import console, print_json, print_table, say
from kquorum.spark_replay.decode.sources import METADATA_FOLDER
from kquorum.wire.wording import counted


def refuse_several(path: Path, folders: Sequence[Path]) -> None:
    """Raises CliError: only one partition is dumped at a time. A node's metadata log is."""
    if folders and not (path / METADATA_FOLDER).is_dir():
        raise CliError(
            f"{path} is a log directory with {counted(len(folders), 'partition')}: name the folder of one, "
            f"such as {folders[0]}",
            status=ExitStatus.USAGE,
        )


def verify_log_directory(path: Path, folders: Sequence[Path], *, as_json: bool, keep: int) -> ExitStatus:
    """Check all `folders` of partitions in `path`, and show what was found."""
    logs = verified_logs(path, keep) if (path / METADATA_FOLDER).is_dir() else []
    checks = [PartitionCheck(folder) for folder in folders]
    sizes = [sum(each.stat().st_size for each in segment_files(folder)) for folder in folders]
    with byte_progress("verifying", sum(sizes)) as advance:
        for check, size in zip(checks, sizes, strict=True):
            check.run()
            advance(size)
    status = max(status_of_logs(logs), *(check.status for check in checks))
    if as_json:
        partitions = [{"partition": check.folder.name, **check.told()} for check in checks]
        verdict = VERDICTS[status]
        print_json(
            {
                "path": str(path),
                "verdict": verdict,
                "logs": [log_json(each) for each in logs],
                "partitions": partitions,
            }
        )
        return status
    show_logs(logs)
    if logs:
        console().print()
    columns = ("partition", *(f"#{name}" for name in checks[0].facts()), "verdict")
    rows = [(check.folder.name, *check.facts().values(), check.verdict) for check in checks]
    print_table(path.name, columns, rows)
    for check in checks:
        show_findings_of(check, keep, name=f"{check.folder.name}/")
    wrong = sum(check.status is not ExitStatus.OK for check in checks)
    say(f"{counted(len(checks), 'partition')}: {f'{wrong} not sound' if wrong else 'sound'}")
    return status
