"""Reconstructs a lost response from the request and the images before and after it.

Where the note says that nothing was refused, each entry of the request was done, which is all that most APIs answer.
Topics are looked for in the images besides: a new one has an id, and of several some may be there.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from kio.schema.errors import ErrorCode

from kquorum.broker.request_effects import (
    Change,
    ConfigsOf,
    created_topic,
    deleted_acls,
    deleted_topic,
    grown_topic,
    new_token,
    token_values,
)
from kquorum.metadata.controller.refusals import refusal
from kquorum.metadata.controller.requests import ApiError, ControllerRequest, Values
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import response_class
from kquorum.wire.protocol.entities import build

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

    def lost_answer(self, request: ControllerRequest, change: Change) -> Any:
        """The response, for what `can_be_told`."""
        values = refusal(request, _DONE if change.is_whole else _UNKNOWN)
        if request.api_key is ApiKey.DELETE_ACLS:
            values["filter_results"] = deleted_acls(request, change)
        elif request.api_key is ApiKey.CREATE_DELEGATION_TOKEN:
            token = new_token(request, change)
            assert token is not None, "such an answer cannot be told"
            values |= token_values(token, self._token_secret_key or "")
        response = build(response_class(request.api_key, request.api_version), values)
        return self.mended_answer(request, response, change)

    def mended_answer(self, request: ControllerRequest, response: Any, change: Change) -> Any:
        """With the topics that are new, gone or grown in the image told as such."""
        if request.api_key not in _TOPIC_ENTRIES:
            return response
        codes, entries_name, effect_of = _TOPIC_ENTRIES[request.api_key]

        def mended(entry: Any) -> Any:
            may_be_done = entry.error_code in codes or entry.error_code in (ErrorCode.none, _UNKNOWN.code)
            values = effect_of(request, change, entry, self._configs_of) if may_be_done else None
            done = {"error_code": ErrorCode.none, "error_message": None}
            return entry if values is None else build(type(entry), done | values)

        return replace(response, **{entries_name: tuple(map(mended, getattr(response, entries_name)))})


def says_undone(request: ControllerRequest, response: Any) -> bool:
    """Whether anything is refused in an answer, as it may be because it is done already."""
    if request.api_key is ApiKey.DELETE_ACLS and not all(
        result.matching_acls for result in response.filter_results
    ):
        return True
    return any(outcome.error_code is not ErrorCode.none for outcome in _outcomes(response))


# The codes of what is done already, where in the response its entries are, and what to tell of one that is done.
_TOPIC_ENTRIES: Mapping[
    ApiKey,
    tuple[
        frozenset[ErrorCode],
        str,
        Callable[[ControllerRequest, Change, Any, ConfigsOf], Values | None],
    ],
] = {
    ApiKey.CREATE_TOPICS: (frozenset({ErrorCode.topic_already_exists}), "topics", created_topic),
    ApiKey.DELETE_TOPICS: (
        frozenset({ErrorCode.unknown_topic_or_partition, ErrorCode.unknown_topic_id}),
        "responses",
        deleted_topic,
    ),
    ApiKey.CREATE_PARTITIONS: (frozenset({ErrorCode.invalid_partitions}), "results", grown_topic),
}


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
