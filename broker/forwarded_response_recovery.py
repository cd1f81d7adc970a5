"""Reconstructs a lost response from the request and the images before and after it.

Where the note says that nothing was refused, each entry of the request was done, which is all that most APIs answer.
Topics are looked for in the images besides: a new one has an id, and of several some may be there.
"""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from kquorum.broker.request_effects import (
    Change,
    ConfigsOf,
    created_topic,
    deleted_acls,
    deleted_topic,
    grown_topic,
    new_token,
)
from kquorum.metadata.controller.refusals import refusal
from kquorum.metadata.controller.requests import ApiError, ControllerRequest
from kquorum.metadata.controller.security.delegation_tokens import created
from kquorum.wire.message_schema import Response
from kquorum.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from kquorum.wire.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from kquorum.wire.messages.delete_acls import DeleteAclsResponse
from kquorum.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsResponse
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey

# Their answers hold an outcome for each entry of the request, and little else.
_PLAIN_ANSWERS = frozenset(
    {
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.ELECT_LEADERS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.REMOVE_RAFT_VOTER,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.UPDATE_FEATURES,
    }
)
_DONE = ApiError(ErrorCode.none)
_UNKNOWN = ApiError(
    ErrorCode.request_timed_out,
    "The answer was lost with a controller. The log tells what else the request has done, but not this; ask again.",
)


class ForwardedResponseRecovery:
    """`token_secret_key` is the node's `delegation.token.secret.key`, from which the passwords of tokens are
    derived."""

    def __init__(self, configs_of: ConfigsOf, token_secret_key: str | None) -> None:
        self._configs_of = configs_of
        self._token_secret_key = token_secret_key

    def can_be_told(self, request: ControllerRequest, change: Change) -> bool:
        """Whether the images hold the answer; otherwise the request has to be sent again to have one."""
        match request.api_key:
            case ApiKey.CREATE_TOPICS | ApiKey.DELETE_TOPICS | ApiKey.CREATE_PARTITIONS:
                return True
            case ApiKey.CREATE_DELEGATION_TOKEN:
                return self._token_secret_key is not None and new_token(request, change) is not None
            case ApiKey.ELECT_LEADERS if request.body.topic_partitions is None:
                return False  # the answer names what was elected
            case _:
                return change.is_whole and request.api_key in _PLAIN_ANSWERS

    def lost_answer(self, request: ControllerRequest, change: Change) -> Response:
        """The response, for what `can_be_told`."""
        if request.api_key is ApiKey.DELETE_ACLS:
            return DeleteAclsResponse(filter_results=deleted_acls(request.body, change))
        if request.api_key is ApiKey.CREATE_DELEGATION_TOKEN:
            token = new_token(request, change)
            assert token is not None, "such an answer cannot be told"
            return created(request, token, self._token_secret_key or "")
        response = refusal(request, _DONE if change.is_whole else _UNKNOWN)
        return self.mended_answer(request, response, change)

    def mended_answer(self, request: ControllerRequest, response: Response, change: Change) -> Response:
        """With the topics that are new, gone or grown in the image told as such."""
        match response:
            case CreateTopicsResponse():
                topics = [self._created(each, change) or each for each in response.topics]
                return replace(response, topics=tuple(topics))
            case DeleteTopicsResponse():
                responses = [_deleted(each, change) or each for each in response.responses]
                return replace(response, responses=tuple(responses))
            case CreatePartitionsResponse():
                results = [_grown(request.body, each, change) or each for each in response.results]
                return replace(response, results=tuple(results))
            case _:
                return response

    def _created(self, entry: CreatableTopicResult, change: Change) -> CreatableTopicResult | None:
        may_be_done = entry.error_code in (*_MAY_BE_DONE, ErrorCode.topic_already_exists)
        return created_topic(change, entry, self._configs_of) if may_be_done else None


# Besides the codes of what is done already.
_MAY_BE_DONE = (ErrorCode.none, _UNKNOWN.code)


def _deleted(entry: DeletableTopicResult, change: Change) -> DeletableTopicResult | None:
    deleted_codes = (ErrorCode.unknown_topic_or_partition, ErrorCode.unknown_topic_id)
    return deleted_topic(change, entry) if entry.error_code in (*_MAY_BE_DONE, *deleted_codes) else None


def _grown(
    request: CreatePartitionsRequest, entry: CreatePartitionsTopicResult, change: Change
) -> CreatePartitionsTopicResult | None:
    may_be_done = entry.error_code in (*_MAY_BE_DONE, ErrorCode.invalid_partitions)
    return grown_topic(request, change, entry) if may_be_done else None


def says_undone(response: Response) -> bool:
    """Whether anything is refused in an answer, as it may be because it is done already."""
    if isinstance(response, DeleteAclsResponse) and not all(
        result.matching_acls for result in response.filter_results
    ):
        return True
    return any(outcome.error_code is not ErrorCode.none for outcome in _outcomes(response))


def _outcomes(response: Any) -> Iterator[Any]:
    """The response and all its entries, whichever have an error code; not what stands inside such an entry."""
    if hasattr(response, "error_code"):
        yield response
    for field in fields(response):
        yield from _outcomes_within(getattr(response, field.name))


def _outcomes_within(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for each in value:
            yield from _outcomes_within(each)
    elif is_dataclass(value) and not hasattr(value, "error_code"):
        for field in fields(value):
            yield from _outcomes_within(getattr(value, field.name))
    elif is_dataclass(value):
        yield value
