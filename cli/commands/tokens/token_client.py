"""Delegation tokens as a client of a broker sees and changes them (KIP-48, KIP-373).

A token's password is the HMAC of its id. The owner, and who may renew the token, may read it from a broker; so the
commands name a token by its id alone.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kquorum.cli.clients.cluster_client import ClusterClient, PendingRequest, check_change, check_error
from kquorum.cli.failures import CliError
from kquorum.wire.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from kquorum.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from kquorum.wire.messages.renew_delegation_token import RenewDelegationTokenRequest

_DOUBT: Final = "it may have been done all the same: look with `kquorum tokens list`"
_LONGEST: Final = -1
# The responses have no field for a message.
_REMEDIES: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.delegation_token_auth_disabled: "set delegation.token.secret.key on every node",
    ErrorCode.delegation_token_request_not_allowed: (
        "only a client that logs in itself, by SASL or with a certificate, and not with a token, may do so: "
        "say how with --command-config"
    ),
    ErrorCode.delegation_token_authorization_failed: "it needs CREATE_TOKENS or DESCRIBE_TOKENS on that user",
    ErrorCode.delegation_token_owner_mismatch: "only its owner and its renewers may do so",
    ErrorCode.delegation_token_expired: "create another with `kquorum tokens create`",
    ErrorCode.invalid_principal_type: "owners and renewers are users: write User:NAME",
}
Principal = tuple[str, str]
"""Type and name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """Times in ms since 1970. `password` is what a client logs in with; the id is its user name."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int
    password: str = field(repr=False)


async def find_tokens(client: ClusterClient, owners: Sequence[Principal] | None) -> tuple[Token, ...]:
    """Of these owners, or all that this client may see; the newest last. Raises CliError for a refusal."""
    asked = None
    if owners is not None:
        asked = tuple(
            DescribeDelegationTokenOwner(principal_type=kind, principal_name=name) for kind, name in owners
        )
    answer = await client.ask(DescribeDelegationTokenRequest(owners=asked))
    _check(answer.error_code, "the tokens cannot be listed")
    return tuple(
        sorted(
            (
                Token(
                    token_id=each.token_id,
                    owner=f"{each.principal_type}:{each.principal_name}",
                    requester=f"{each.token_requester_principal_type}:{each.token_requester_principal_name}",
                    renewers=tuple(
                        f"{renewer.principal_type}:{renewer.principal_name}" for renewer in each.renewers
                    ),
                    issued_ms=each.issue_timestamp,
                    expires_ms=each.expiry_timestamp,
                    max_ms=each.max_timestamp,
                    password=base64.b64encode(each.hmac).decode(),
                )
                for each in answer.tokens
            ),
            key=lambda token: (token.issued_ms, token.token_id),
        )
    )


async def create_token(
    client: ClusterClient, owner: Principal | None, renewers: Sequence[Principal], max_lifetime_ms: int | None
) -> Token:
    """Without an owner, of the client itself. Raises CliError for a refusal."""
    request = CreateDelegationTokenRequest(
        owner_principal_type=None if owner is None else owner[0],
        owner_principal_name=None if owner is None else owner[1],
        renewers=tuple(
            CreatableRenewers(principal_type=kind, principal_name=name) for kind, name in renewers
        ),
        max_lifetime_ms=_LONGEST if max_lifetime_ms is None else max_lifetime_ms,
    )
    answer = await client.ask(PendingRequest(request=request, doubt=_DOUBT))
    _check(answer.error_code, "no token was created")
    return Token(
        token_id=answer.token_id,
        owner=f"{answer.principal_type}:{answer.principal_name}",
        requester=f"{answer.token_requester_principal_type}:{answer.token_requester_principal_name}",
        renewers=tuple(f"{kind}:{name}" for kind, name in renewers),
        issued_ms=answer.issue_timestamp_ms,
        expires_ms=answer.expiry_timestamp_ms,
        max_ms=answer.max_timestamp_ms,
        password=base64.b64encode(answer.hmac).decode(),
    )


async def the_token(client: ClusterClient, token_id: str) -> Token:
    """Raises CliError if this client sees no such token."""
    for token in await find_tokens(client, None):
        if token.token_id == token_id:
            return token
    raise CliError(f"there is no token {token_id} that this client may see (`kquorum tokens list`)")


async def renew_token(client: ClusterClient, token: Token, period_ms: int | None) -> int:
    """When it expires now, in ms since 1970. Raises CliError for a refusal."""
    request = RenewDelegationTokenRequest(
        hmac=base64.b64decode(token.password), renew_period_ms=_LONGEST if period_ms is None else period_ms
    )
    answer = await client.ask(PendingRequest(request=request, doubt=_DOUBT))
    _check(answer.error_code, f"token {token.token_id} was not renewed")
    return answer.expiry_timestamp_ms


async def expire_token(client: ClusterClient, token: Token, after_ms: int | None) -> int:
    """Without a time it is removed at once. When it expires, in ms since 1970. Raises CliError for a refusal."""
    request = ExpireDelegationTokenRequest(
        hmac=base64.b64decode(token.password), expiry_time_period_ms=-1 if after_ms is None else after_ms
    )
    answer = await client.ask(PendingRequest(request=request, doubt=_DOUBT))
    if answer.error_code is ErrorCode.delegation_token_not_found and client.was_in_doubt:
        return answer.expiry_timestamp_ms  # an attempt before, which was not answered, removed it
    _check(answer.error_code, f"token {token.token_id} does not expire")
    return answer.expiry_timestamp_ms


def _check(code: ErrorCode, what: str) -> None:
    remedy = _REMEDIES.get(code)
    if remedy is None:
        check_change(int(code), None, what, _DOUBT)
    else:
        check_error(int(code), remedy, what)
