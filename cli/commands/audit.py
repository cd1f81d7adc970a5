"""`kquorum audit`: a metadata log as tables, and what can be asked of them; on Spark."""

import typer

from cli.commands.audit_build import build

audit_app = typer.Typer(
    help="Replay a metadata log into tables that answer questions (Spark).",
    no_args_is_help=True,
    add_completion=False,
)


@audit_app.callback()
def _audit() -> None:
    """Replay a metadata log into tables that answer questions."""


audit_app.command("build")(build)
