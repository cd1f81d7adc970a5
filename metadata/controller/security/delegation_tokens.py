"""CreateDelegationToken, RenewDelegationToken, ExpireDelegationToken, and the removal of expired tokens (KIP-48,
KIP-373; rule C18).

Whether a principal may make tokens, and for whom, has been seen to before (metadata.authorizer).
"""

from dataclasses import replace
from hmac import compare_digest

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.controller.context import DecisionContext
from kquorum.metadata.controller.periodic import Outcome, PeriodicTask
from kquorum.metadata.controller.requests import ApiError, ControllerRequest
from kquorum.metadata.controller.results import ControllerResult
from kquorum.metadata.delegation_tokens import is_expired, split_principal, token_hmac
from kquorum.metadata.image.metadata_version import DELEGATION_TOKENS
from kquorum.metadata.image.records import delegation_token_record
from kquorum.metadata.image.security import DelegationToken
from kquorum.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from kquorum.wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from kquorum.wire.metadata_records.security import RemoveDelegationTokenRecord
from kquorum.wire.uuids import uuid_to_text

USER_TYPE = "User"
# The end of the year 9999: what a response can say at the latest.
_END_OF_TIME_MS = 253_402_300_799_999
# "type:name" is one string of the record, whose length has two bytes.
_MAX_PRINCIPAL_BYTES = 32_767
# Of one token. Kafka has no limits here; a token with 45,000 renewers is two megabytes on every node.
MAX_RENEWERS = 100
MAX_RENEWERS_BYTES = 16 * 1024
# Of one owner's tokens: as many records of up to a KiB as the owner may have tokens (or this many, where that is less)
# in so much time, and twice as many at once: each token is made and renewed. A larger record counts for each KiB.
_WRITES_AT_LEAST = 200
_WRITES_WINDOW_MS = 200_000
_WRITE_BYTES = 1024
# A renewal by less than this part of its period leaves the expiry where it is.
_RENEWAL_GRAIN = 100


def create_delegation_token(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
    """Any authenticated user may call this, and what it makes stays in the state of every node until it expires. So the
    tokens of an owner are counted, and the owner's expired ones leave with the same decision."""
    secret_key = _checked_secret_key(context)
    token = _new_token(context, request)
    expired = _room_for_one_more(context, token.owner)
    _charge(context, token)
    return ControllerResult(
        records=(*expired, delegation_token_record(token)),
        response=created(request, token, secret_key),
        audit_reason=f"create a delegation token for {token.owner}",
    )


def created(
    request: ControllerRequest, token: DelegationToken, secret_key: str
) -> CreateDelegationTokenResponse:
    """What is answered to the request that has made the token."""
    return replace(
        _for_principals(request),
        issue_timestamp_ms=token.issue_timestamp_ms,
        expiry_timestamp_ms=token.expiration_timestamp_ms,
        max_timestamp_ms=token.max_timestamp_ms,
        token_id=token.token_id,
        hmac=token_hmac(secret_key, token.token_id),
    )


def renew_delegation_token(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
    body: RenewDelegationTokenRequest = request.body
    token = _token_of(context, body.hmac)
    if is_expired(token, context.now_ms):
        raise ApiError(ErrorCode.delegation_token_expired)
    _check_may_renew(token, request)
    period_ms = context.config.delegation_token_expiry_time_ms
    if body.renew_period_ms > 0:
        period_ms = min(period_ms, body.renew_period_ms)
    changed = _expiring(token, context.now_ms + period_ms)
    is_written = _is_written(context, token, changed, later_by_ms=period_ms // _RENEWAL_GRAIN)
    token = changed if is_written else token
    return ControllerResult(
        records=(delegation_token_record(token),) if is_written else (),
        response=RenewDelegationTokenResponse(expiry_timestamp_ms=token.expiration_timestamp_ms),
        audit_reason=f"renew a delegation token of {token.owner}" if is_written else None,
    )


def expire_delegation_token(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
    """A negative period removes the token at once, an expired one too. That is never refused for its rate: the token
    may be in the wrong hands, and each was paid for when it was made."""
    body: ExpireDelegationTokenRequest = request.body
    token = _token_of(context, body.hmac)
    _check_may_renew(token, request)
    if body.expiry_time_period_ms < 0:
        return ControllerResult(
            records=(RemoveDelegationTokenRecord(token_id=token.token_id),),
            response=ExpireDelegationTokenResponse(expiry_timestamp_ms=context.now_ms),
            audit_reason=f"expire a delegation token of {token.owner} at once",
        )
    if is_expired(token, context.now_ms):
        raise ApiError(ErrorCode.delegation_token_expired)
    changed = _expiring(token, context.now_ms + body.expiry_time_period_ms)
    is_written = _is_written(context, token, changed)
    return ControllerResult(
        records=(delegation_token_record(changed),) if is_written else (),
        response=ExpireDelegationTokenResponse(expiry_timestamp_ms=changed.expiration_timestamp_ms),
        audit_reason=f"set the expiry of a delegation token of {token.owner}" if is_written else None,
    )


def sweep_expired_tokens(context: DecisionContext) -> Outcome:
    tokens = context.image.security.delegation_tokens.values()
    expired = sorted(token.token_id for token in tokens if is_expired(token, context.now_ms))
    room = context.config.max_records_per_batch
    records = tuple(RemoveDelegationTokenRecord(token_id=token_id) for token_id in expired[:room])
    return Outcome(records, has_more=len(expired) > room)


def sweep_interval_ms(config: ControllerConfig) -> int:
    """Without a secret key this node knows no tokens."""
    return config.delegation_token_expiry_check_interval_ms if config.delegation_token_secret_key else 0


EXPIRY_SWEEP = PeriodicTask(
    name="expired delegation tokens", interval_ms=sweep_interval_ms, run=sweep_expired_tokens
)


def creation_refusal(request: ControllerRequest, error: ApiError) -> CreateDelegationTokenResponse:
    """The response has no field for a message."""
    return replace(_for_principals(request), error_code=error.code)


def _checked_secret_key(context: DecisionContext) -> str:
    if not context.config.delegation_token_secret_key:
        raise ApiError(ErrorCode.delegation_token_auth_disabled)
    if context.metadata_version < DELEGATION_TOKENS:
        raise ApiError(ErrorCode.unsupported_version)
    return context.config.delegation_token_secret_key


def _new_token(context: DecisionContext, request: ControllerRequest) -> DelegationToken:
    config = context.config
    max_lifetime_ms = config.delegation_token_max_lifetime_ms
    body: CreateDelegationTokenRequest = request.body
    if body.max_lifetime_ms > 0:
        max_lifetime_ms = min(max_lifetime_ms, body.max_lifetime_ms)
    max_timestamp_ms = min(context.now_ms + max_lifetime_ms, _END_OF_TIME_MS)
    return DelegationToken(
        token_id=uuid_to_text(context.random_uuid()),
        owner=_recordable(":".join(token_owner(request))),
        requester=_recordable(request.principal),
        renewers=_checked_renewers(request),
        issue_timestamp_ms=context.now_ms,
        max_timestamp_ms=max_timestamp_ms,
        expiration_timestamp_ms=min(
            max_timestamp_ms, context.now_ms + config.delegation_token_expiry_time_ms
        ),
    )


def _checked_renewers(request: ControllerRequest) -> tuple[str, ...]:
    body: CreateDelegationTokenRequest = request.body
    renewers = body.renewers
    if any(renewer.principal_type != USER_TYPE for renewer in renewers):
        raise ApiError(ErrorCode.invalid_principal_type)
    if len(renewers) > MAX_RENEWERS:
        raise ApiError(ErrorCode.invalid_request)
    names = tuple(_recordable(f"{each.principal_type}:{each.principal_name}") for each in renewers)
    if sum(len(name.encode()) for name in names) > MAX_RENEWERS_BYTES:
        raise ApiError(ErrorCode.invalid_request)
    return names


def _room_for_one_more(context: DecisionContext, owner: str) -> tuple[RemoveDelegationTokenRecord, ...]:
    """The removal of the owner's expired tokens. Raises ApiError if as many as an owner may have are left."""
    tokens = [each for each in context.image.security.delegation_tokens.values() if each.owner == owner]
    expired = sorted(each.token_id for each in tokens if is_expired(each, context.now_ms))
    if len(tokens) - len(expired) >= context.config.delegation_token_max_per_owner:
        raise ApiError(ErrorCode.policy_violation)
    # At least one place is free when as many are removed as the batch takes beside the new token.
    removed = expired[: context.config.max_records_per_batch - 1]
    return tuple(RemoveDelegationTokenRecord(token_id=token_id) for token_id in removed)


def _recordable(principal: str) -> str:
    if len(principal.encode()) > _MAX_PRINCIPAL_BYTES:
        raise ApiError(ErrorCode.invalid_request)
    return principal


def _token_of(context: DecisionContext, hmac: bytes) -> DelegationToken:
    """The token with the HMAC in the request; Kafka searches all tokens in the same way."""
    secret_key = _checked_secret_key(context)
    for token in context.image.security.delegation_tokens.values():
        if compare_digest(token_hmac(secret_key, token.token_id), hmac):
            return token
    raise ApiError(ErrorCode.delegation_token_not_found)


def _check_may_renew(token: DelegationToken, request: ControllerRequest) -> None:
    if request.principal not in (token.owner, *token.renewers):
        raise ApiError(ErrorCode.delegation_token_owner_mismatch)


def _expiring(token: DelegationToken, expiration_ms: int) -> DelegationToken:
    end_ms = min(token.max_timestamp_ms, _END_OF_TIME_MS)  # Kafka's tokens may live longer than dates go
    return replace(token, expiration_timestamp_ms=min(end_ms, expiration_ms))


def _is_written(
    context: DecisionContext, token: DelegationToken, changed: DelegationToken, later_by_ms: int = 0
) -> bool:
    """Whether the change takes a record, which is then charged: not for an expiry that would not move, or would be put
    off by less than `later_by_ms`. An earlier expiry is always set exactly."""
    later_ms = changed.expiration_timestamp_ms - token.expiration_timestamp_ms
    if later_ms == 0 or 0 < later_ms < later_by_ms:
        return False
    _charge(context, changed)
    return True


def _charge(context: DecisionContext, token: DelegationToken) -> None:
    """The owner pays for a record of its token, whichever renewer has it written: the owner chose the renewers, and a
    hundred of them must not be a hundred times the rate.

    Raises THROTTLING_QUOTA_EXCEEDED, and charges nothing, when the bucket is overdrawn already; the answer's throttle
    time then says when it is filled, as for KIP-599.
    """
    permits = max(_WRITES_AT_LEAST, context.config.delegation_token_max_per_owner)
    rate = permits * 1000 / _WRITES_WINDOW_MS
    bucket = context.token_writes.filled(token.owner, rate, 2 * permits, context.now_ms)
    wait_ms = bucket.until_filled_ms()
    if wait_ms:
        context.mutation_charges.throttle_time_ms = wait_ms
        raise ApiError(ErrorCode.throttling_quota_exceeded)
    names = (token.owner, token.requester, *token.renewers)
    bucket.tokens -= 1 + sum(len(name.encode()) for name in names) // _WRITE_BYTES


def token_owner(request: ControllerRequest) -> tuple[str, str]:
    """Type and name. Up to version 2 tokens are for who asks; from 3 on another owner may be named (KIP-373)."""
    body: CreateDelegationTokenRequest = request.body
    if not body.owner_principal_name:
        return split_principal(request.principal)
    return body.owner_principal_type or USER_TYPE, body.owner_principal_name


def _for_principals(request: ControllerRequest) -> CreateDelegationTokenResponse:
    owner_type, owner_name = token_owner(request)
    requester_type, requester_name = split_principal(request.principal)
    return CreateDelegationTokenResponse(
        principal_type=owner_type,
        principal_name=owner_name,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester_name,
    )
