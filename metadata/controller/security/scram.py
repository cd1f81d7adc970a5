"""AlterUserScramCredentials (KIP-554; rule C18): what of a password a server must know to check it.

The client sends the salted password, from which the two keys are derived that are kept (RFC 5802): neither the password
nor a proof of it can be made of them. Only the owner of a credential is ever returned or logged.
"""

import hashlib
import hmac
from typing import TypeVar

from kquorum.metadata.controller.context import DecisionContext
from kquorum.metadata.controller.requests import ApiError, ControllerRequest
from kquorum.metadata.controller.results import ControllerResult
from kquorum.metadata.image.metadata_version import SCRAM
from kquorum.metadata.image.security import ScramUser
from kquorum.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.security import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from kquorum.wire.salt_forms import MIN_ITERATIONS as MIN_ITERATIONS
from kquorum.wire.schema import MetadataRecord

# ScramMechanism: the codes of the protocol, and Python's names of the hashes.
HASHES = {1: "sha256", 2: "sha512"}
MAX_ITERATIONS = 16_384
_NAMES_IN_REASON = 10

Change = TypeVar("Change", ScramCredentialDeletion, ScramCredentialUpsertion)


def alter_user_scram_credentials(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
    """User by user; a user that is named twice, in any way, is not altered at all."""
    body: AlterUserScramCredentialsRequest = request.body
    errors: dict[str, ApiError] = {}
    deletions: dict[str, ScramCredentialDeletion] = {}
    upsertions: dict[str, ScramCredentialUpsertion] = {}
    for deletion in body.deletions:
        _admit(context, deletion, deletions, (deletions,), errors)
    for upsertion in body.upsertions:
        _admit(context, upsertion, upsertions, (deletions, upsertions), errors)
    records: list[MetadataRecord] = [
        *(
            RemoveUserScramCredentialRecord(name=each.name, mechanism=each.mechanism)
            for each in deletions.values()
        ),
        *map(_credential, upsertions.values()),
    ]
    names = [*deletions, *upsertions]
    return ControllerResult(
        records=tuple(records),
        response=AlterUserScramCredentialsResponse(
            results=(
                *[AlterUserScramCredentialsResult(user=name, error_message=None) for name in names],
                *[
                    AlterUserScramCredentialsResult(
                        user=name, error_code=error.code, error_message=error.message
                    )
                    for name, error in errors.items()
                ],
            )
        ),
        audit_reason=_reason(names),
    )


def _admit(
    context: DecisionContext,
    change: Change,
    accepted: dict[str, Change],
    seen: tuple[dict[str, ScramCredentialDeletion] | dict[str, ScramCredentialUpsertion], ...],
    errors: dict[str, ApiError],
) -> None:
    """Into `accepted` or into `errors`; a second change of a user takes the first one out of those `seen`."""
    name = change.name
    if name in errors:
        return
    if [each for each in seen if each.pop(name, None) is not None]:
        reason = "A user credential cannot be altered twice in the same request"
        errors[name] = ApiError(ErrorCode.duplicate_resource, reason)
        return
    try:
        _check(context, change)
    except ApiError as error:
        errors[name] = error
    else:
        accepted[name] = change


def _check(context: DecisionContext, change: ScramCredentialDeletion | ScramCredentialUpsertion) -> None:
    if context.metadata_version < SCRAM:
        reason = "The current metadata.version does not support SCRAM"
        raise ApiError(ErrorCode.unsupported_version, reason)
    if not change.name:
        raise ApiError(ErrorCode.unacceptable_credential, "Username must not be empty")
    if change.mechanism not in HASHES:
        raise ApiError(ErrorCode.unsupported_sasl_mechanism, "Unknown SCRAM mechanism")
    if isinstance(change, ScramCredentialUpsertion):
        _check_upsertion(change)
    elif ScramUser(change.mechanism, change.name) not in context.image.security.scram:
        reason = "Attempt to delete a user credential that does not exist"
        raise ApiError(ErrorCode.resource_not_found, reason)


def _check_upsertion(upsertion: ScramCredentialUpsertion) -> None:
    if upsertion.iterations < MIN_ITERATIONS:
        raise ApiError(ErrorCode.unacceptable_credential, "Too few iterations")
    if upsertion.iterations > MAX_ITERATIONS:
        raise ApiError(ErrorCode.unacceptable_credential, "Too many iterations")
    if not upsertion.salted_password:
        raise ApiError(ErrorCode.unacceptable_credential, "The salted password must not be empty")


def _credential(upsertion: ScramCredentialUpsertion) -> UserScramCredentialRecord:
    name = HASHES[upsertion.mechanism]
    client_key = hmac.digest(upsertion.salted_password, b"Client Key", name)
    return UserScramCredentialRecord(
        name=upsertion.name,
        mechanism=upsertion.mechanism,
        salt=upsertion.salt,
        stored_key=hashlib.new(name, client_key).digest(),
        server_key=hmac.digest(upsertion.salted_password, b"Server Key", name),
        iterations=upsertion.iterations,
    )


def _reason(names: list[str]) -> str:
    more = f" and {len(names) - _NAMES_IN_REASON} more" if len(names) > _NAMES_IN_REASON else ""
    return f"alter SCRAM credentials: {', '.join(names[:_NAMES_IN_REASON])}{more}"
