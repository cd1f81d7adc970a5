"""A lost response is rebuilt from the log."""

from collections.abc import Sequence
from typing import Any

import pytest

from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.metadata.delegation_tokens import token_hmac
from kquorum.metadata.image.image import MetadataImage
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.security import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
)
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.schema import MetadataRecord
from tests.support.broker.listening_broker import CREATE, TOPIC
from tests.support.broker.repeated_requests import (
    BEFORE,
    FORWARDING_ID,
    NEW,
    SECRET_KEY,
    asked,
    note_of,
    requests,
    second_answer,
)
from tests.support.images import after, topic_id


def lost_answer(
    request: ControllerRequest,
    records: Sequence[MetadataRecord],
    *,
    is_whole: bool = True,
    before: MetadataImage = BEFORE,
) -> Any:
    """The response to a request whose note came before it was sent again; None: it is sent again."""
    repeated = requests()
    with repeated.watch(FORWARDING_ID, request) as watched:
        watched.doubt()
        assert not repeated.can_tell(watched)
        repeated.observe(0, *after(before, note_of(request, is_whole=is_whole), *records))
        return repeated.lost_answer(watched) if repeated.can_tell(watched) else None


ACL: dict[str, Any] = {"resource_type": 2, "resource_name": "orders", "principal": "User:a", "host": "*"}
ACL_RECORD = AccessControlEntryRecord(id=topic_id(9), pattern_type=3, operation=3, permission_type=3, **ACL)
FILTER = {
    "resource_type_filter": 2,
    "resource_name_filter": None,
    "pattern_type_filter": 3,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
CONFIG = {"resource_type": 2, "resource_name": "orders", "configs": ()}
ELECTION = {
    "election_type": 0,
    "topic_partitions": [{"topic": "orders", "partitions": [0]}],
    "timeout_ms": 1000,
}
REASSIGNMENT = {"name": "orders", "partitions": [{"partition_index": 0, "replicas": [102]}]}
PLAIN: list[tuple[ApiKey, dict[str, Any]]] = [
    (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, {"deletions": [{"name": "a", "mechanism": 1}], "upsertions": ()}),
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, {"resources": [CONFIG], "validate_only": False}),
    (ApiKey.ELECT_LEADERS, ELECTION),
    (ApiKey.ALTER_PARTITION_REASSIGNMENTS, {"topics": [REASSIGNMENT], "timeout_ms": 1000}),
    (
        ApiKey.CREATE_ACLS,
        {"creations": [ACL | {"resource_pattern_type": 3, "operation": 3, "permission_type": 3}]},
    ),
    (ApiKey.REMOVE_RAFT_VOTER, {"cluster_id": "c", "voter_id": 4, "voter_directory_id": None}),
]


def codes(response: Any) -> set[ErrorCode]:
    lists = (getattr(response, name, None) for name in ("responses", "results", "replica_election_results"))
    entries = next((each for each in lists if each), [response])
    parts = [
        getattr(entry, "partitions", None) or getattr(entry, "partition_result", None) or [entry]
        for entry in entries
    ]
    return {part.error_code for each in parts for part in each}


@pytest.mark.parametrize(("api_key", "values"), PLAIN)
def test_what_the_log_has_whole_is_reported_as_done(api_key: ApiKey, values: dict[str, Any]) -> None:
    request = asked(api_key, values)
    assert codes(lost_answer(request, ())) == {ErrorCode.none}
    assert codes(second_answer(request, ErrorCode.resource_not_found, ())) == {ErrorCode.none}


@pytest.mark.parametrize(("api_key", "values"), PLAIN)
def test_what_was_refused_in_part_is_sent_again(api_key: ApiKey, values: dict[str, Any]) -> None:
    request = asked(api_key, values)
    assert lost_answer(request, (), is_whole=False) is None
    refused = second_answer(request, ErrorCode.resource_not_found, (), is_whole=False)
    assert codes(refused) == {ErrorCode.resource_not_found}


def test_a_request_known_only_from_its_answer_is_sent_again() -> None:
    election = ELECTION | {"topic_partitions": None}
    assert lost_answer(asked(ApiKey.ELECT_LEADERS, election), ()) is None
    expiry = {"hmac": b"x", "expiry_time_period": 1, "expiry_time_period_ms": 1}
    assert lost_answer(asked(ApiKey.EXPIRE_DELEGATION_TOKEN, expiry), ()) is None


def token_record(token_id: str, requester: str = "User:alice") -> DelegationTokenRecord:
    return DelegationTokenRecord(
        owner="User:alice",
        requester=requester,
        renewers=(),
        issue_timestamp=1000,
        max_timestamp=9000,
        expiration_timestamp=5000,
        token_id=token_id,
    )


def test_a_created_token_is_recovered_with_its_password_and_not_created_twice() -> None:
    values = {"renewers": (), "max_lifetime": -1, "owner_principal_type": None, "owner_principal_name": None}
    request = asked(ApiKey.CREATE_DELEGATION_TOKEN, values)
    before = after(BEFORE, token_record("old"))[1]
    made = [token_record("new"), token_record("others", "User:bob")]
    answer = lost_answer(request, made, before=before)
    assert (answer.error_code, answer.token_id) == (ErrorCode.none, "new")
    assert answer.hmac == token_hmac(SECRET_KEY, "new")
    assert (answer.principal_name, answer.expiry_timestamp_ms) == ("alice", 5000)
    # Two requests alike in all else cannot be told apart.
    assert lost_answer(request, [*made, token_record("newer")], before=before) is None


def test_of_several_topics_those_in_the_image_are_reported_as_created() -> None:
    topics = [TOPIC, TOPIC | {"name": "orders"}]
    request = asked(ApiKey.CREATE_TOPICS, CREATE | {"topics": topics})
    new, orders = lost_answer(request, NEW, is_whole=False).topics
    assert (new.error_code, new.topic_id) == (ErrorCode.none, topic_id(2))
    assert orders.error_code is ErrorCode.request_timed_out
    assert "ask again" in orders.error_message


def test_acls_that_were_deleted_are_named_by_each_filter() -> None:
    request = asked(ApiKey.DELETE_ACLS, {"filters": [FILTER, FILTER | {"host_filter": "other"}]})
    gone = [RemoveAccessControlEntryRecord(id=ACL_RECORD.id)]
    before = after(BEFORE, ACL_RECORD)[1]
    for answer in (
        lost_answer(request, gone, before=before),
        second_answer(request, ErrorCode.none, gone, before=before),
    ):
        first, second = answer.filter_results
        assert [(acl.resource_name, acl.principal) for acl in first.matching_acls] == [("orders", "User:a")]
        assert (first.error_code, second.error_code) == (ErrorCode.none, ErrorCode.none)
        assert second.matching_acls == ()
