"""`kquorum audit`: a metadata log as tables, and what can be asked of them; on Spark."""

from difflib import get_close_matches
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from cli.commands.audit_archive import archive
from cli.commands.audit_as_of import as_of
from cli.commands.audit_build import build
from cli.commands.audit_check import check
from cli.commands.audit_churn import churn
from cli.commands.audit_diff import diff
from cli.commands.audit_report import report
from cli.commands.audit_sql import sql
from cli.commands.audit_stream import stream
from cli.commands.audit_timeline import timeline, who
from cli.commands.audit_unavailable import unavailable


class AuditGroup(TyperGroup):
    """Names the command that is meant where a log stands in the place of one."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in self.commands and self._is_no_slip(name):
            from spark_replay.sources import printable

            ctx.fail(
                f"audit has no command {printable(name)}; to build tables of a log: "
                f"kquorum audit build {printable(name)} --out FOLDER"
            )
        return super().resolve_command(ctx, args)

    def _is_no_slip(self, name: str) -> bool:
        """Whether it cannot be a command with a letter wrong, for which click names the nearest."""
        return "/" in name or Path(name).exists() or not get_close_matches(name, list(self.commands))


audit_app = typer.Typer(
    cls=AuditGroup,
    help="Replay a metadata log into tables that answer questions (Spark).",
    no_args_is_help=True,
    add_completion=False,
)


@audit_app.callback()
def _audit() -> None:
    """Replay a metadata log into tables that answer questions."""


audit_app.command("build")(build)
audit_app.command("as-of")(as_of)
audit_app.command("stream")(stream)
audit_app.command("archive")(archive)
audit_app.command("diff")(diff)
audit_app.command("timeline")(timeline)
audit_app.command("who")(who)
audit_app.command("report")(report)
audit_app.command("check")(check)
audit_app.command("unavailable")(unavailable)
audit_app.command("churn")(churn)
audit_app.command("sql")(sql)
