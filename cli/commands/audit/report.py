"""The work of `audit report`: check where the page goes, gather, render, and put it there whole or not at all."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kquorum.cli.commands.audit.options import Engine
from kquorum.cli.commands.audit.query import AuditQuery, asking
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.private_files import replace_whole
from kquorum.spark_replay.audit_manifest import is_audit
from kquorum.spark_replay.report.facts import Checks, ReportFacts
from kquorum.spark_replay.report.gather import gather
from kquorum.spark_replay.report.highlights import highlights
from kquorum.spark_replay.report.page import GENERATOR, render


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRequest:
    """Which log, which time (milliseconds since the epoch, inclusive), and where the page goes."""

    path: Path
    out: Path
    source: str | None
    since_ms: int | None
    until_ms: int | None
    with_checks: bool
    engine: Engine | None
    master: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenReport:
    """`is_damaged`: the page was made from a log with places that could not be read."""

    facts: ReportFacts
    out: Path
    size_in_bytes: int
    is_damaged: bool

    def as_json(self) -> dict[str, Any]:
        return {
            "report": str(self.out),
            "size_in_bytes": self.size_in_bytes,
            "source": self.facts.log.source,
            "since_ms": self.facts.window.start_ms if self.facts.window else None,
            "until_ms": self.facts.window.end_ms if self.facts.window else None,
            "highlights": [asdict(each) for each in highlights(self.facts)],
        }


def write_report(request: ReportRequest) -> WrittenReport:
    """Raises CliError for everything that a user can put right."""
    _check(request)
    with asking(
        request.path, source=request.source, engine=request.engine, master=request.master
    ) as question:
        tables, source = question.tables, question.source
        checks = _checks(question) if request.with_checks else Checks()
        facts = gather(
            tables,
            source,
            since_ms=request.since_ms,
            until_ms=request.until_ms,
            checks=checks,
            progress=tables.progress,
        )
    page = render(facts).encode()
    _put(request.out, page)
    return WrittenReport(
        facts=facts,
        out=request.out,
        size_in_bytes=len(page),
        is_damaged=facts.log.damage_total > 0 and not is_audit(request.path),
    )


def _checks(question: AuditQuery) -> Checks:
    """The checks replay whole logs, which takes Spark."""
    from kquorum.cli.commands.audit.spark_tables import OpenedTables
    from kquorum.spark_replay.report.check_facts import check_facts

    tables = question.tables
    assert isinstance(tables, OpenedTables)
    return check_facts(tables, question.source, progress=tables.progress)


def _check(request: ReportRequest) -> None:
    """What can be wrong without any look at the log."""
    out = request.out
    if request.since_ms is not None and request.until_ms is not None and request.since_ms > request.until_ms:
        raise CliError("--since is later than --until", status=ExitStatus.USAGE)
    if out.is_dir():
        raise CliError(f"--out {out} is a folder; name a file in it", status=ExitStatus.USAGE)
    if not out.parent.is_dir():
        raise CliError(
            f"--out {out}: there is no folder {out.parent}; make it first", status=ExitStatus.USAGE
        )
    if out.exists() and not _is_report(out):
        raise CliError(f"--out {out} exists and is no report; name another file", status=ExitStatus.USAGE)


def _is_report(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return GENERATOR.encode() in file.read(4096)
    except OSError as error:
        raise CliError(f"--out {path} cannot be read: {error.strerror}", status=ExitStatus.USAGE) from None


def _put(out: Path, page: bytes) -> None:
    try:
        replace_whole(out, page)
    except OSError as error:
        raise CliError(f"--out {out} cannot be written: {error.strerror}", status=ExitStatus.FAILED) from None
