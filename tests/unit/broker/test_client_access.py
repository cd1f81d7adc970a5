"""A broker's own answers under an authorizer: what is hidden, what is refused, and what is asked of the controller."""

from typing import Any

import pytest

from kquorum.broker.adapters.listener import BrokerListener
from kquorum.broker.adapters.topic_creation import AutoTopicCreation
from kquorum.broker.client_access import ALL_CLUSTER_OPERATIONS, ALL_TOPIC_OPERATIONS
from kquorum.broker.metadata_cache.cache import MetadataCache
from kquorum.metadata.authorizer.authorizer import Authorizer, AuthorizerConfig
from kquorum.metadata.authorizer.codes import Operation
from kquorum.metadata.authorizer.denial_log import DenialLog
from kquorum.metadata.authorizer.gate import RequestAuthorizer
from kquorum.metadata.image.security import AccessControlEntry
from kquorum.network.requests import RequestContext
from kquorum.wire.message_schema import Response
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.security import AccessControlEntryRecord
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from kquorum.wire.protocol.headers import EncodedBody, RequestHeader
from tests.support.acl_worlds import ADMIN, ALICE, HERE, acl
from tests.support.api_calls import read_answer, request_of
from tests.support.broker_services import broker_services
from tests.support.images import LISTENER, broker_record, image_of, partition_record, topic_records
from tests.support.kio.classes import response_class
from tests.support.kio.codec import decode, encode

FAILED = ErrorCode.topic_authorization_failed
CLUSTER_FAILED = ErrorCode.cluster_authorization_failed
TOPICS = ("open", "secret", "writable")
ANY_ACL = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
ASK_BITS = {"include_topic_authorized_operations": True, "include_cluster_authorized_operations": True}


class Created:
    """In place of a forwarder: what it was asked to have created."""

    def __init__(self) -> None:
        self.names: list[str] = []

    async def create_topics(self, _context: RequestContext, topics: list[dict[str, Any]]) -> None:
        self.names += [topic["name"] for topic in topics]


class BrokerWorld:
    def __init__(self, *entries: AccessControlEntry, auto_create: bool = False) -> None:
        cache = MetadataCache()
        records = [
            AccessControlEntryRecord(
                id=type(entry.id)(int=number + 1),
                **{name: getattr(entry, name) for name in type(entry).__dataclass_fields__ if name != "id"},
            )
            for number, entry in enumerate(entries)
        ]
        topics = [
            record
            for number, name in enumerate(TOPICS, 1)
            for record in topic_records(
                number, name, *(partition_record(number, each, (1,)) for each in (0, 1))
            )
        ]
        cache.swap(image_of(broker_record(1), *topics, *records))
        self.lines: list[str] = []
        config = AuthorizerConfig(super_users=frozenset({ADMIN}))
        forwarder: Any = Created()
        services = broker_services(
            cache,
            forwarder,
            topic_creation=AutoTopicCreation(forwarder) if auto_create else None,
            node_id=1,
            authorizer=RequestAuthorizer(Authorizer(config), DenialLog(lambda: 0, self.lines.append)),
        )
        self.listener = BrokerListener(services)

    def ask(
        self, api_key: ApiKey, values: dict[str, Any], version: int | None = None, principal: str = ALICE
    ) -> Any:
        version = supported_versions(api_key)[1] if version is None else version
        context = RequestContext(
            1, HERE, LISTENER, RequestHeader(api_key, version, 3, "client"), principal, security_protocol=2
        )
        answers: list[Any] = []
        self.listener.handle(context, request_of(api_key, version, values), answers.append)
        [answer] = answers
        if isinstance(answer, Response):
            return read_answer(api_key, version, answer)
        data = answer.data if isinstance(answer, EncodedBody) else encode(answer)
        return decode(response_class(api_key, version), data)[0]


def limited(**options: Any) -> BrokerWorld:
    return BrokerWorld(acl(Operation.DESCRIBE, "open"), acl(Operation.WRITE, "writable"), **options)


def metadata(*names: str, **fields: Any) -> dict[str, Any]:
    asked = [{"name": name, "topic_id": None} for name in names] or None
    flags = dict.fromkeys(ASK_BITS, False)
    return {"topics": asked, "allow_auto_topic_creation": False, **flags, **fields}


def errors(answer: Any) -> dict[str, ErrorCode]:
    return {topic.name: topic.error_code for topic in answer.topics}


def test_topics_that_may_not_be_described_are_left_out_or_refused_by_name() -> None:
    world = limited()
    assert errors(world.ask(ApiKey.METADATA, metadata())) == dict.fromkeys(
        ("open", "writable"), ErrorCode.none
    )
    assert not world.lines
    answer = world.ask(ApiKey.METADATA, metadata("open", "secret", "missing-and-hidden"))
    assert errors(answer) == {"open": ErrorCode.none, "secret": FAILED, "missing-and-hidden": FAILED}
    assert len(world.lines) == 2
    assert len(world.ask(ApiKey.METADATA, metadata(), principal=ADMIN).topics) == len(TOPICS)


def test_by_id_a_hidden_topic_has_no_name() -> None:
    world = limited()
    hidden = next(
        each.topic_id
        for each in world.ask(ApiKey.METADATA, metadata(), principal=ADMIN).topics
        if each.name == "secret"
    )
    asked = {**metadata(), "topics": [{"name": None, "topic_id": hidden}]}
    [topic] = world.ask(ApiKey.METADATA, asked).topics
    assert (topic.name, topic.topic_id, topic.error_code) == (None, hidden, FAILED)


@pytest.mark.parametrize("version", [8, 13])
def test_operations_are_reported_for_names_without_a_topic_too_but_not_of_hidden_ones(version: int) -> None:
    world = BrokerWorld(acl(Operation.WRITE, "new"), acl(Operation.DESCRIBE, "a b"))
    asked = metadata("new", "a b", "hidden", include_topic_authorized_operations=True)
    told = {each.name: each for each in world.ask(ApiKey.METADATA, asked, version).topics}
    describe, write = 1 << Operation.DESCRIBE, 1 << Operation.WRITE
    assert (told["new"].error_code, told["new"].topic_authorized_operations) == (
        ErrorCode.unknown_topic_or_partition,
        describe | write,
    )
    assert (told["a b"].error_code, told["a b"].topic_authorized_operations) == (
        ErrorCode.invalid_topic_exception,
        describe,
    )
    assert (told["hidden"].error_code, told["hidden"].topic_authorized_operations) == (FAILED, -(2**31))


@pytest.mark.parametrize("version", [8, 10])
def test_operations_are_reported_for_topics_and_cluster(version: int) -> None:
    world = limited()
    answer = world.ask(ApiKey.METADATA, metadata(**ASK_BITS), version)
    bits = {topic.name: topic.topic_authorized_operations for topic in answer.topics}
    assert bits == {
        "open": 1 << Operation.DESCRIBE,
        "writable": 1 << Operation.DESCRIBE | 1 << Operation.WRITE,
    }
    assert answer.cluster_authorized_operations == 0
    answer = world.ask(ApiKey.METADATA, metadata(**ASK_BITS), version, ADMIN)
    assert {topic.topic_authorized_operations for topic in answer.topics} == {ALL_TOPIC_OPERATIONS}
    assert answer.cluster_authorized_operations == ALL_CLUSTER_OPERATIONS


def test_a_missing_topic_is_created_for_who_may_create_it() -> None:
    world = BrokerWorld(acl(Operation.DESCRIBE, "new"), acl(Operation.DESCRIBE, "other"), auto_create=True)
    answer = world.ask(ApiKey.METADATA, metadata("new", allow_auto_topic_creation=True))
    assert errors(answer) == {"new": FAILED}
    assert any("denied CREATE on topic new" in line for line in world.lines)
    # Who does not ask for it is not refused it.
    unknown = {"new": ErrorCode.unknown_topic_or_partition}
    assert errors(world.ask(ApiKey.METADATA, metadata("new"))) == unknown
    without = BrokerWorld(acl(Operation.DESCRIBE, "new"))
    assert errors(without.ask(ApiKey.METADATA, metadata("new", allow_auto_topic_creation=True))) == unknown


def pages(world: BrokerWorld, *names: str, cursor: dict[str, Any] | None = None, limit: int = 100) -> Any:
    asked = {
        "topics": [{"name": name} for name in names],
        "response_partition_limit": limit,
        "cursor": cursor,
    }
    return world.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, asked)


def test_pages_of_topics_leave_out_or_refuse_as_well() -> None:
    world = limited()
    whole = pages(world)
    assert errors(whole) == dict.fromkeys(("open", "writable"), ErrorCode.none)
    assert [topic.topic_authorized_operations for topic in whole.topics] == [
        1 << Operation.DESCRIBE,
        1 << Operation.DESCRIBE | 1 << Operation.WRITE,
    ]
    first = pages(world, limit=2)
    # The page ends before a topic that may be seen, not before a hidden one.
    assert (errors(first), first.next_cursor.topic_name) == ({"open": ErrorCode.none}, "writable")
    named = pages(world, *TOPICS, "missing")
    assert [(topic.name, topic.error_code) for topic in named.topics] == [
        ("open", ErrorCode.none),
        ("writable", ErrorCode.none),
        ("missing", FAILED),
        ("secret", FAILED),
    ]
    assert {topic.topic_id.int if topic.topic_id else 0 for topic in named.topics[2:]} == {0}


def test_describe_cluster_is_open_but_for_its_bits() -> None:
    ask = {
        "include_cluster_authorized_operations": True,
        "endpoint_type": 1,
        "include_fenced_brokers": False,
    }
    answer = limited().ask(ApiKey.DESCRIBE_CLUSTER, ask)
    assert (answer.error_code, answer.cluster_authorized_operations) == (ErrorCode.none, 0)
    world = BrokerWorld(acl(Operation.DESCRIBE), acl(Operation.ALTER_CONFIGS))
    bits = world.ask(ApiKey.DESCRIBE_CLUSTER, ask).cluster_authorized_operations
    granted = (Operation.DESCRIBE, Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS)
    assert bits == sum(1 << operation for operation in granted)


def test_other_questions_take_rights_on_the_cluster() -> None:
    world, entitled = limited(), BrokerWorld(acl(Operation.DESCRIBE), acl(Operation.DESCRIBE_CONFIGS))
    questions: dict[ApiKey, dict[str, Any]] = {
        ApiKey.DESCRIBE_LOG_DIRS: {"topics": None},
        ApiKey.DESCRIBE_ACLS: ANY_ACL,
        ApiKey.LIST_CONFIG_RESOURCES: {"resource_types": ()},
        ApiKey.DESCRIBE_CLIENT_QUOTAS: {"components": (), "strict": False},
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: {"users": None},
    }
    for api_key, values in questions.items():
        assert world.ask(api_key, values).error_code is CLUSTER_FAILED, api_key
        assert entitled.ask(api_key, values).error_code is ErrorCode.none, api_key


def test_tokens_are_refused_before_they_are_forwarded() -> None:
    """On PLAINTEXT, which only the broker knows of."""
    world = limited()
    context = RequestContext(
        1, HERE, LISTENER, RequestHeader(ApiKey.RENEW_DELEGATION_TOKEN, 2, 3, "x"), ALICE
    )
    body = request_of(ApiKey.RENEW_DELEGATION_TOKEN, 2, {"hmac": b"x", "renew_period": 0})
    answers: list[Any] = []
    world.listener.handle(context, body, answers.append)
    assert [each.error_code for each in answers] == [ErrorCode.delegation_token_request_not_allowed]
