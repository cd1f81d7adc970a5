"""SCRAM credentials of users as a client of a broker sees and changes them (KIP-554).

The salted password is computed here: the password itself does not leave this machine.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kquorum.cli.clients.cluster_client import ClusterClient, PendingRequest, check_change, check_error
from kquorum.network.security.scram import salted_password
from kquorum.wire.message_schema import Request
from kquorum.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kquorum.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from kquorum.wire.messages.error_codes import ErrorCode

# ScramMechanism of the protocol.
MECHANISM_CODES: Final[Mapping[str, int]] = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
_SALT_BYTES: Final = 24


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Credential:
    user: str
    mechanism: str
    iterations: int


async def find_credentials(client: ClusterClient, users: Sequence[str] | None) -> tuple[Credential, ...]:
    """Of these users, or of all; a user without credentials has none here. Raises CliError for a refusal."""
    names = None if users is None else tuple(UserName(name=name) for name in users)
    answer = await client.ask(DescribeUserScramCredentialsRequest(users=names))
    what = "the users cannot be listed"
    check_error(int(answer.error_code), answer.error_message, what)
    for result in answer.results:
        if result.error_code is not ErrorCode.resource_not_found:
            check_error(int(result.error_code), result.error_message, f"{what}: {result.user}")
    names_of = {code: name for name, code in MECHANISM_CODES.items()}
    return tuple(
        sorted(
            Credential(
                user=result.user,
                mechanism=names_of.get(each.mechanism, f"mechanism {each.mechanism}"),
                iterations=each.iterations,
            )
            for result in answer.results
            for each in result.credential_infos
        )
    )


async def set_password(
    client: ClusterClient, user: str, mechanism: str, iterations: int, password: str
) -> None:
    """Raises CliError for a refusal."""
    salt = secrets.token_bytes(_SALT_BYTES)
    upsertion = ScramCredentialUpsertion(
        name=user,
        mechanism=MECHANISM_CODES[mechanism],
        iterations=iterations,
        salt=salt,
        salted_password=salted_password(mechanism, password, salt, iterations),
    )
    request = AlterUserScramCredentialsRequest(upsertions=(upsertion,))
    await _alter(client, request, f"the {mechanism} credential of {user} was not set")


async def remove_credential(client: ClusterClient, user: str, mechanism: str) -> None:
    """Raises CliError for a refusal; a credential that is gone already is none."""
    deletion = ScramCredentialDeletion(name=user, mechanism=MECHANISM_CODES[mechanism])
    request = AlterUserScramCredentialsRequest(deletions=(deletion,))
    await _alter(client, request, f"the {mechanism} credential of {user} was not removed")


async def _alter(
    client: ClusterClient, request: Request[AlterUserScramCredentialsResponse], what: str
) -> None:
    doubt = "it may have been done all the same: look with `kquorum users list`"
    [result] = (await client.ask(PendingRequest(request=request, doubt=doubt))).results
    if result.error_code is ErrorCode.resource_not_found and client.was_in_doubt:
        return  # an attempt before, which was not answered, removed it
    check_change(int(result.error_code), result.error_message, what, doubt)
