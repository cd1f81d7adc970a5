"""The work of `audit check`: the checks of an audit, or of a log whose tables are made for it."""

from dataclasses import dataclass
from pathlib import Path

from cli.audit.check_hashes import recorded_hashes
from cli.audit.check_output import show_report, write_json
from cli.audit.opened import opened
from cli.errors import CliError
from cli.exit_status import ExitStatus
from spark_replay.audit_folder import AuditManifest
from spark_replay.checks.checking import ALL_GROUPS, CheckRequest, check_audit


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckWish:
    """What was asked for, as the options say it. `only` names groups of checks; empty: all."""

    path: Path
    sources: tuple[str, ...]
    only: tuple[str, ...]
    state_hashes: tuple[str, ...]
    hash_files: tuple[Path, ...]
    same_cluster: bool
    keep: int
    as_json: bool
    master: str


def run_check(wish: CheckWish) -> ExitStatus:
    """FAILED where a rule is violated, else OK. Raises CliError."""
    recorded = recorded_hashes(wish.state_hashes, wish.hash_files)
    with opened(wish.path, master=wish.master) as tables:
        for source in (*wish.sources, *(each for each in recorded if each is not None)):
            _check_source(tables.manifest, source)
        request = CheckRequest(
            sources=tuple(dict.fromkeys(wish.sources)),
            groups=tuple(each for each in ALL_GROUPS if not wish.only or each in wish.only),
            keep=wish.keep,
            recorded=recorded,
            one_cluster=wish.same_cluster,
        )
        report = check_audit(tables, request, progress=tables.progress)
        tables.progress("")
        if wish.as_json:
            write_json(wish.path, tables.manifest, report)
        else:
            show_report(tables.manifest, report, keep=wish.keep)
    return ExitStatus.FAILED if report.violations else ExitStatus.OK


def _check_source(manifest: AuditManifest, name: str) -> None:
    names = [each.source for each in manifest.sources]
    if name not in names:
        raise CliError(f"no log {name} in this audit; it has {', '.join(names)}", status=ExitStatus.USAGE)
