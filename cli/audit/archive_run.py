"""The work of `audit archive`: archive or verify, and every reason not to told in one line with its exit status."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cli.errors import CliError
from cli.exit_status import ExitStatus
from spark_replay.archive.archiving import ArchiveRefused, NotAnArchive, archive
from spark_replay.archive.files import ArchiveLocked
from spark_replay.archive.manifest import ManifestBroken
from spark_replay.archive.plan import AnotherCluster
from spark_replay.archive.report import ArchiveReport
from spark_replay.archive.run import Progress
from spark_replay.archive.verify import NoArchive, Verified, verify_archive
from spark_replay.sources import NoLogFound


def run_archive(roots: Sequence[str], to: Path, *, include_active: bool) -> ArchiveReport:
    """Raises CliError."""
    with _refusals_told(), _progress() as progress:
        return archive(roots, to, include_active=include_active, progress=progress)


def run_verify(folder: Path, *, head: str | None) -> Verified:
    """Raises CliError."""
    with _refusals_told(), _progress() as progress:
        return verify_archive(folder, head=head, progress=progress)


def status_of_run(report: ArchiveReport) -> ExitStatus:
    """What was archived is safe; that offsets are lost, or that bytes are damaged, is told once."""
    return ExitStatus.DAMAGED_INPUT if report.is_troubled else ExitStatus.OK


def status_of_verified(verified: Verified) -> ExitStatus:
    """An archive that is as it was made may have been made of a log with a gap or damage."""
    if verified.findings:
        return ExitStatus.FAILED
    is_whole = not any(member.gaps or member.damaged for member in verified.members)
    return ExitStatus.OK if is_whole else ExitStatus.DAMAGED_INPUT


def as_json(answer: ArchiveReport | Verified) -> dict[str, Any]:
    return asdict(answer)


@contextmanager
def _refusals_told() -> Iterator[None]:
    try:
        yield
    except (NoLogFound, NotAnArchive, NoArchive) as error:
        raise CliError(str(error), status=ExitStatus.USAGE) from None
    except ArchiveLocked as error:
        raise CliError(f"{error}; run this again when it is done", status=ExitStatus.FOLDER_REFUSED) from None
    except AnotherCluster as error:
        raise CliError(f"nothing was archived: {error}", status=ExitStatus.FAILED) from None
    except ArchiveRefused as error:
        raise CliError(
            f"nothing was archived: {error}. The archive stays as it is; what the log holds now needs an archive in "
            "another folder",
            status=ExitStatus.FAILED,
        ) from None
    except ManifestBroken as error:
        raise CliError(
            f"nothing was archived: {error}. `audit archive --verify` tells more; begin another archive, and keep this "
            "one for what its files still prove",
            status=ExitStatus.FAILED,
        ) from None


@contextmanager
def _progress() -> Iterator[Progress]:
    """One changing line on a terminal; elsewhere the report at the end is all that is said."""
    if not sys.stderr.isatty():
        yield lambda step: None  # noqa: ARG005
        return
    from rich.text import Text

    from cli.output import error_console

    with error_console().status("") as status:
        yield lambda step: status.update(Text(step))
