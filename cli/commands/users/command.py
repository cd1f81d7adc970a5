"""`kquorum users`: list, add, alter and remove SCRAM credentials of users through a broker."""

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kquorum.cli.command_tree import Command, Panel
from kquorum.cli.options import AsJson, BootstrapServer, DryRun, MaybeConfigPath, Reason, TimeoutMs

if TYPE_CHECKING:
    from kquorum.cli.clients.cluster_client import ClusterClient


class Mechanism(StrEnum):
    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"


User = Annotated[str, typer.Argument(help="The user's name, without `User:`.")]
Mechanisms = Annotated[
    list[Mechanism] | None,
    typer.Option("--mechanism", case_sensitive=False, help="The mechanism; may be repeated."),
]
PasswordFile = Annotated[
    str | None,
    typer.Option("--password-file", metavar="FILE", help="The password's file; `-` for standard input."),
]
# The least and the most that Kafka takes.
Iterations = Annotated[
    int, typer.Option("--iterations", min=4096, max=16384, help="How often the password is hashed.")
]
DEFAULT_ITERATIONS = 8192
users_app = typer.Typer(
    help="List, add, alter and remove users' SCRAM credentials.", no_args_is_help=True, add_completion=False
)


@users_app.command("list")
def list_users(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Only these users.", show_default=False)
    ] = None,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 10_000,
    as_json: AsJson = False,
) -> None:
    """List the users with SCRAM credentials; passwords are known to no node."""
    from kquorum.cli.clients.cluster_client import ask_brokers
    from kquorum.cli.commands.users.user_client import find_credentials
    from kquorum.cli.output import print_json, print_table
    from kquorum.wire.wording import counted

    found = ask_brokers(
        config, bootstrap_server, timeout_ms, lambda client: find_credentials(client, names or None)
    )
    rows = [asdict(each) for each in found]
    if as_json:
        print_json(rows)
        return
    title = counted(len(found), "credential")
    print_table(title, ("user", "mechanism", "#iterations"), [tuple(row.values()) for row in rows])


@users_app.command()
def add(
    user: User,
    password_file: PasswordFile = None,
    mechanism: Mechanisms = None,
    iterations: Iterations = DEFAULT_ITERATIONS,
    dry_run: DryRun = False,
    reason: Reason = None,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 10_000,
    as_json: AsJson = False,
) -> None:
    """Give a user a password, by default for SCRAM-SHA-512. A user that has one for the mechanism is refused: `kquorum
    users alter` changes it.

    Without --password-file the terminal asks for the password.
    """
    _set(
        user,
        mechanism or [Mechanism.SHA_512],
        iterations,
        password_file,
        dry_run=dry_run,
        is_new=True,
        reason=reason,
        config=config,
        bootstrap_server=bootstrap_server,
        timeout_ms=timeout_ms,
        as_json=as_json,
    )


@users_app.command()
def alter(
    user: User,
    password_file: PasswordFile = None,
    mechanism: Mechanisms = None,
    iterations: Iterations = DEFAULT_ITERATIONS,
    dry_run: DryRun = False,
    reason: Reason = None,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 10_000,
    as_json: AsJson = False,
) -> None:
    """Change the password of a user, for all mechanisms for which the user has one, or for those named.

    Connections that are authenticated already stay so. Without --password-file the terminal asks for the password.
    """
    _set(
        user,
        mechanism or [],
        iterations,
        password_file,
        dry_run=dry_run,
        is_new=False,
        reason=reason,
        config=config,
        bootstrap_server=bootstrap_server,
        timeout_ms=timeout_ms,
        as_json=as_json,
    )


def _set(
    user: str,
    asked: list[Mechanism],
    iterations: int,
    password_file: str | None,
    *,
    dry_run: bool,
    is_new: bool,
    reason: str | None,
    config: Path | None,
    bootstrap_server: str | None,
    timeout_ms: int,
    as_json: bool,
) -> None:
    """Looks first, so that a refusal does not cost the user typing a password."""
    from kquorum.cli.clients.cluster_client import ask_brokers
    from kquorum.cli.commands.users.user_client import find_credentials, set_password
    from kquorum.cli.secrets import read_secret

    found = ask_brokers(config, bootstrap_server, timeout_ms, lambda client: find_credentials(client, [user]))
    mechanisms = _mechanisms(user, asked, [each.mechanism for each in found], is_new=is_new)
    if not dry_run:
        password = read_secret(password_file, "password", "--password-file", is_new=True)

        async def change(client: "ClusterClient") -> None:
            # One at a time: a user that is named twice in a request is refused.
            for name in mechanisms:
                await set_password(client, user, name, iterations, password)

        ask_brokers(config, bootstrap_server, timeout_ms, change, reason)
    verb = (
        ("would be added" if is_new else "would be altered") if dry_run else "added" if is_new else "altered"
    )
    _say_done(user, mechanisms, verb, changed=not dry_run, as_json=as_json)


def _mechanisms(user: str, asked: list[Mechanism], there: list[str], *, is_new: bool) -> list[str]:
    """Those to set. Raises CliError where the user has, or lacks, what is asked for."""
    from kquorum.cli.failures import CliError

    names = list(dict.fromkeys(each.value for each in asked))
    if is_new:
        if both := [name for name in names if name in there]:
            raise CliError(
                f"user {user} has a password for {', '.join(both)} already: change it with `kquorum users alter {user}`"
            )
        return names
    missing = [name for name in names if name not in there]
    if missing or not there:
        lacking = f" for {', '.join(missing)}" if missing else ""
        raise CliError(f"user {user} has no password{lacking}: give one with `kquorum users add {user}`")
    return names or there


@users_app.command()
def remove(
    user: User,
    mechanism: Mechanisms = None,
    dry_run: DryRun = False,
    reason: Reason = None,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 10_000,
    as_json: AsJson = False,
) -> None:
    """Remove the password of a user, for all mechanisms or those named. A user without one is a success.

    The user's ACLs and quotas stay, and so do connections that are authenticated already.
    """
    from kquorum.cli.clients.cluster_client import ask_brokers
    from kquorum.cli.commands.users.user_client import find_credentials, remove_credential

    async def change(client: "ClusterClient") -> list[str]:
        there = [each.mechanism for each in await find_credentials(client, [user])]
        wanted = [name for name in there if mechanism is None or name in [each.value for each in mechanism]]
        for name in [] if dry_run else wanted:
            await remove_credential(client, user, name)
        return wanted

    removed = ask_brokers(config, bootstrap_server, timeout_ms, change, reason)
    _say_done(
        user, removed, "would be removed" if dry_run else "removed", changed=not dry_run, as_json=as_json
    )


def _say_done(user: str, mechanisms: list[str], verb: str, *, changed: bool, as_json: bool) -> None:
    from kquorum.cli.output import print_json, say

    if as_json:
        print_json({"user": user, "mechanisms": mechanisms, "changed": changed and bool(mechanisms)})
    elif mechanisms:
        say(f"user {user}: {', '.join(mechanisms)} {verb}")
    else:
        say(f"user {user} has no such password")


COMMAND = Command(
    run=users_app,
    summary="List, add, alter and remove users' SCRAM credentials.",
    panel=Panel.ADMINISTER,
    place=4,
    examples={
        "list": ("kquorum users list -c quorum.toml",),
        "add": (
            "kquorum users add alice -c quorum.toml",
            "kquorum users add alice --mechanism SCRAM-SHA-256 --password-file alice.txt",
        ),
        "alter": ("pass show kafka/alice | kquorum users alter alice --password-file -",),
        "remove": ("kquorum users remove alice --reason 'left us' -c quorum.toml",),
    },
)
