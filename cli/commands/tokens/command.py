"""`kquorum tokens`: list, create, renew and expire delegation tokens through a broker."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kquorum.cli.command_tree import Command, Panel
from kquorum.cli.options import AsJson, BootstrapServer, DryRun, MaybeConfigPath, Reason, TimeoutMs
from kquorum.cli.principals import checked_principal

if TYPE_CHECKING:
    from kquorum.cli.clients.cluster_client import ClusterClient
    from kquorum.cli.commands.tokens.token_client import Token

TokenId = Annotated[str, typer.Argument(metavar="TOKEN_ID", help="The token's id (`kquorum tokens list`).")]
tokens_app = typer.Typer(
    help="List, create, renew and expire delegation tokens.", no_args_is_help=True, add_completion=False
)


@tokens_app.command("list")
def list_tokens(
    owner: Annotated[
        list[str] | None,
        typer.Option("--owner", metavar="User:NAME", help="Only of this owner; may be repeated."),
    ] = None,
    show_secrets: Annotated[
        bool, typer.Option("--show-secrets", help="With --json: show the passwords of the tokens too.")
    ] = False,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 10_000,
    as_json: AsJson = False,
) -> None:
    """List the tokens that you own, may renew, or may describe, with the times at which they expire (UTC)."""
    from kquorum.cli.clients.cluster_client import ask_brokers
    from kquorum.cli.commands.tokens.token_client import find_tokens
    from kquorum.cli.output import print_json, print_table, utc_text
    from kquorum.wire.wording import counted

    owners = None if owner is None else [checked_principal(each) for each in owner]
    found = ask_brokers(config, bootstrap_server, timeout_ms, lambda client: find_tokens(client, owners))
    if as_json:
        print_json([_as_json(each, show_secrets=show_secrets) for each in found])
        return
    rows = [
        (
            each.token_id,
            each.owner,
            each.renewers,
            *(utc_text(time_ms)[:16] for time_ms in (each.issued_ms, each.expires_ms, each.max_ms)),
        )
        for each in found
    ]
    columns = ("token", "owner", "renewers", "issued", "expires", "at the latest")
    print_table(counted(len(found), "token"), columns, rows, spare=("issued", "renewers", "at the latest"))


@tokens_app.command()
def create(
    owner: Annotated[
        str | None, typer.Option("--owner", metavar="User:NAME", help="For another user than yourself.")
    ] = None,
    renewer: Annotated[
        list[str] | None,
        typer.Option("--renewer", metavar="User:NAME", help="Who may renew it; may be repeated."),
    ] = None,
    max_lifetime_ms: Annotated[
        int | None,
        typer.Option("--max-lifetime-ms", min=1, help="Instead of what the nodes allow at most."),
    ] = None,
    password_file: Annotated[
        Path | None,
        typer.Option(
            "--password-file", metavar="FILE", help="Write the password here instead of showing it."
        ),
    ] = None,
    reason: Reason = None,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 10_000,
    as_json: AsJson = False,
) -> None:
    """Create a token, and show its id and its password: a client logs in with them by SCRAM as with a user's, with
    `tokenauth="true"` in sasl.jaas.config.
    """
    from kquorum.cli.clients.cluster_client import ask_brokers
    from kquorum.cli.commands.tokens.token_client import create_token
    from kquorum.cli.output import print_json, say, utc_text
    from kquorum.cli.secrets import check_new_file, write_secret

    of = None if owner is None else checked_principal(owner)
    renewers = [checked_principal(each) for each in renewer or ()]
    if password_file is not None:
        check_new_file(password_file)
    token = ask_brokers(
        config,
        bootstrap_server,
        timeout_ms,
        lambda client: create_token(client, of, renewers, max_lifetime_ms),
        reason,
    )
    if password_file is not None:
        write_secret(password_file, token.password)
    if as_json:
        print_json(_as_json(token, show_secrets=password_file is None))
        return
    say(f"token {token.token_id} of {token.owner} was created")
    say(f"password: {token.password if password_file is None else f'in {password_file}'}")
    say(f"expires: {utc_text(token.expires_ms)[:16]} UTC, at the latest {utc_text(token.max_ms)[:16]}")


@tokens_app.command()
def renew(
    token_id: TokenId,
    period_ms: Annotated[
        int | None, typer.Option("--period-ms", min=1, help="Instead of what the nodes have configured.")
    ] = None,
    dry_run: DryRun = False,
    reason: Reason = None,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 10_000,
    as_json: AsJson = False,
) -> None:
    """Let a token expire later, but not after its latest time."""
    from kquorum.cli.clients.cluster_client import ask_brokers
    from kquorum.cli.commands.tokens.token_client import renew_token, the_token

    async def change(client: "ClusterClient") -> int:
        token = await the_token(client, token_id)
        return token.expires_ms if dry_run else await renew_token(client, token, period_ms)

    expires_ms = ask_brokers(config, bootstrap_server, timeout_ms, change, reason)
    verb = "would be renewed; now it expires" if dry_run else "was renewed; it expires"
    _say_expiry(token_id, verb, expires_ms, changed=not dry_run, as_json=as_json)


@tokens_app.command()
def expire(
    token_id: TokenId,
    after_ms: Annotated[
        int | None, typer.Option("--after-ms", min=0, help="After this time instead of at once.")
    ] = None,
    dry_run: DryRun = False,
    reason: Reason = None,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 10_000,
    as_json: AsJson = False,
) -> None:
    """End a token, at once or at a time. Its connections are closed at their next request."""
    from kquorum.cli.clients.cluster_client import ask_brokers
    from kquorum.cli.commands.tokens.token_client import expire_token, the_token

    async def change(client: "ClusterClient") -> int:
        token = await the_token(client, token_id)
        return token.expires_ms if dry_run else await expire_token(client, token, after_ms)

    expires_ms = ask_brokers(config, bootstrap_server, timeout_ms, change, reason)
    verb = "would be ended; now it expires" if dry_run else "ends"
    _say_expiry(token_id, verb, expires_ms, changed=not dry_run, as_json=as_json)


def _say_expiry(token_id: str, verb: str, expires_ms: int, *, changed: bool, as_json: bool) -> None:
    from kquorum.cli.output import print_json, say, utc_text

    if as_json:
        print_json({"token_id": token_id, "expires_ms": expires_ms, "changed": changed})
    else:
        say(f"token {token_id} {verb} at {utc_text(expires_ms)[:19]} UTC")


def _as_json(token: "Token", *, show_secrets: bool) -> dict[str, object]:
    found = asdict(token)
    return found if show_secrets else found | {"password": None}


COMMAND = Command(
    run=tokens_app,
    summary="List, create, renew and expire delegation tokens.",
    panel=Panel.ADMINISTER,
    place=6,
    examples={
        "list": ("kquorum tokens list --command-config admin.properties -c quorum.toml",),
        "create": (
            "kquorum tokens create --renewer User:scheduler --command-config me.txt",
            "kquorum tokens create --max-lifetime-ms 3600000 --password-file job.token",
        ),
        "renew": ("kquorum tokens renew 4a6UqRwTQ1qTMRhOk0Ij2w --command-config me.txt",),
        "expire": ("kquorum tokens expire 4a6UqRwTQ1qTMRhOk0Ij2w --command-config me.txt",),
    },
)
