"""CreateDelegationToken, RenewDelegationToken, ExpireDelegationToken, and the sweep of what has expired (KIP-48,
KIP-373; rule C18).

Whether a principal may make tokens, and for whom, has been seen to before (metadata.authorizer).
"""

from dataclasses import replace
from hmac import compare_digest
from typing import Any

from kio.schema.errors import ErrorCode

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.controller.context import DecisionContext
from kquorum.metadata.controller.periodic import Outcome, PeriodicTask
from kquorum.metadata.controller.requests import ApiError, ControllerRequest, Values
from kquorum.metadata.controller.results import ControllerResult
from kquorum.metadata.delegation_tokens import is_expired, split_principal, token_hmac
from kquorum.metadata.image.metadata_version import DELEGATION_TOKENS
from kquorum.metadata.image.records import delegation_token_record
from kquorum.metadata.image.security import DelegationToken
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
    response = {
        **_principals(request),
        "error_code": ErrorCode.none,
        "issue_timestamp": token.issue_timestamp_ms,
        "expiry_timestamp": token.expiration_timestamp_ms,
        "max_timestamp": token.max_timestamp_ms,
        "token_id": token.token_id,
        "hmac": token_hmac(secret_key, token.token_id),
        "throttle_time": 0,
    }
    return ControllerResult(
        records=(*expired, delegation_token_record(token)),
        response=response,
        audit_reason=f"create a delegation token for {token.owner}",
    )


def renew_delegation_token(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
    token = _token_of(context, request)
    if is_expired(token, context.now_ms):
        raise ApiError(ErrorCode.delegation_token_expired)
    _check_may_renew(token, request)
    period_ms = context.config.delegation_token_expiry_time_ms
    asked_ms = _milliseconds(request.body.renew_period)
    if asked_ms > 0:
        period_ms = min(period_ms, asked_ms)
    return _expiring(
        context, token, context.now_ms + period_ms, "renew", later_by_ms=period_ms // _RENEWAL_GRAIN
    )


def expire_delegation_token(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
    """A negative period removes the token at once, an expired one too. That is never refused for its rate: the token
    may be in the wrong hands, and each was paid for when it was made."""
    token = _token_of(context, request)
    _check_may_renew(token, request)
    period_ms = _milliseconds(request.body.expiry_time_period)
    if period_ms < 0:
        return ControllerResult(
            records=(RemoveDelegationTokenRecord(token_id=token.token_id),),
            response=_expiry_answer(ErrorCode.none, context.now_ms),
            audit_reason=f"expire a delegation token of {token.owner} at once",
        )
    if is_expired(token, context.now_ms):
        raise ApiError(ErrorCode.delegation_token_expired)
    return _expiring(context, token, context.now_ms + period_ms, "set the expiry of")


def sweep_expired_tokens(context: DecisionContext) -> Outcome:
    tokens = context.image.security.delegation_tokens.values()
    expired = sorted(token.token_id for token in tokens if is_expired(token, context.now_ms))
    room = context.config.max_records_per_batch
    records = tuple(RemoveDelegationTokenRecord(token_id=token_id) for token_id in expired[:room])
    return Outcome(records, has_more=len(expired) > room)


def sweep_interval_ms(config: ControllerConfig) -> int:
    """Without a secret key there are no tokens that this node knows of."""
    return config.delegation_token_expiry_check_interval_ms if config.delegation_token_secret_key else 0


EXPIRY_SWEEP = PeriodicTask(
    name="expired delegation tokens", interval_ms=sweep_interval_ms, run=sweep_expired_tokens
)


def creation_refusal(request: ControllerRequest, error: ApiError) -> Values:
    """The response has no place for a message."""
    return {
        **_principals(request),
        "error_code": error.code,
        "issue_timestamp": 0,
        "expiry_timestamp": 0,
        "max_timestamp": 0,
        "token_id": "",
        "hmac": b"",
    }


def _checked_secret_key(context: DecisionContext) -> str:
    if not context.config.delegation_token_secret_key:
        raise ApiError(ErrorCode.delegation_token_auth_disabled)
    if context.metadata_version < DELEGATION_TOKENS:
        raise ApiError(ErrorCode.unsupported_version)
    return context.config.delegation_token_secret_key


def _new_token(context: DecisionContext, request: ControllerRequest) -> DelegationToken:
    config = context.config
    max_lifetime_ms = config.delegation_token_max_lifetime_ms
    asked_ms = _milliseconds(request.body.max_lifetime)
    if asked_ms > 0:
        max_lifetime_ms = min(max_lifetime_ms, asked_ms)
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
    renewers = request.body.renewers
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


def _token_of(context: DecisionContext, request: ControllerRequest) -> DelegationToken:
    """The token whose password the request shows; Kafka looks it up among all in the same way."""
    secret_key = _checked_secret_key(context)
    for token in context.image.security.delegation_tokens.values():
        if compare_digest(token_hmac(secret_key, token.token_id), request.body.hmac):
            return token
    raise ApiError(ErrorCode.delegation_token_not_found)


def _check_may_renew(token: DelegationToken, request: ControllerRequest) -> None:
    if request.principal not in (token.owner, *token.renewers):
        raise ApiError(ErrorCode.delegation_token_owner_mismatch)


def _expiring(
    context: DecisionContext, token: DelegationToken, expiration_ms: int, deed: str, later_by_ms: int = 0
) -> ControllerResult:
    """Writes no record for an expiry that would not move, or would be put off by less than `later_by_ms`. An earlier
    expiry is always set exactly."""
    end_ms = min(token.max_timestamp_ms, _END_OF_TIME_MS)  # Kafka's tokens may live longer than dates go
    changed = replace(token, expiration_timestamp_ms=min(end_ms, expiration_ms))
    later_ms = changed.expiration_timestamp_ms - token.expiration_timestamp_ms
    if later_ms == 0 or 0 < later_ms < later_by_ms:
        return ControllerResult(response=_expiry_answer(ErrorCode.none, token.expiration_timestamp_ms))
    _charge(context, changed)
    return ControllerResult(
        records=(delegation_token_record(changed),),
        response=_expiry_answer(ErrorCode.none, changed.expiration_timestamp_ms),
        audit_reason=f"{deed} a delegation token of {token.owner}",
    )


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


def _expiry_answer(code: ErrorCode, expiry_ms: int) -> Values:
    return {"error_code": code, "expiry_timestamp": expiry_ms, "throttle_time": 0}


def token_owner(request: ControllerRequest) -> tuple[str, str]:
    """Type and name. Up to version 2 tokens are for who asks; from 3 on another owner may be named (KIP-373)."""
    name = getattr(request.body, "owner_principal_name", None)
    if not name:
        return split_principal(request.principal)
    return request.body.owner_principal_type or USER_TYPE, name


def _principals(request: ControllerRequest) -> Values:
    owner_type, owner_name = token_owner(request)
    requester_type, requester_name = split_principal(request.principal)
    return {
        "principal_type": owner_type,
        "principal_name": owner_name,
        "token_requester_principal_type": requester_type,
        "token_requester_principal_name": requester_name,
    }


def _milliseconds(duration: Any) -> int:
    """kio reads these as timedeltas."""
    days_ms = duration.days * 86_400_000
    return int(days_ms + duration.seconds * 1000 + duration.microseconds // 1000)
