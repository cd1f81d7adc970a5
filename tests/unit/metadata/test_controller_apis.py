"""The registry of a controller's APIs: its lines agree with the replica's codec, and with what Kafka's schemas say."""

import pytest
from kio.schema.index import api_key_map

from kquorum.metadata.adapters.listener import controller_listener_apis
from kquorum.metadata.controller.refusals import refusal
from kquorum.metadata.controller.requests import ApiError, ControllerRequest
from kquorum.metadata.controller_apis import (
    CONTROLLER_APIS,
    FORWARDABLE_APIS,
    HANDLERS,
    QUESTIONS,
    READERS,
    REPLICAS_APIS,
    ClusterQuestion,
    ForwardedRequest,
    QuorumRequest,
)
from kquorum.raft.adapters.kafka_codec.codec import RAFT_APIS
from kquorum.wire import message_codec
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import message_types, supported_versions
from tests.support.kio.classes import response_class
from tests.support.kio.codec import encode
from tests.support.kio.entities import build
from tests.support.many_entries import longest_answer, requests_of_many_entries

# Judged before the body is read, so refused without it.
BEFORE_BODY = sorted(key for key, api in CONTROLLER_APIS.items() if not api.authorization.needs_body)


def test_every_line_is_of_one_kind_and_stands_under_its_own_key() -> None:
    rest = QuorumRequest | ClusterQuestion | ForwardedRequest
    others = {key for key, api in CONTROLLER_APIS.items() if isinstance(api, rest)}
    kinds = [HANDLERS.keys(), READERS.keys(), QUESTIONS.keys(), others]
    assert sorted(key for kind in kinds for key in kind) == sorted(CONTROLLER_APIS)
    assert all(api.api_key is key for key, api in CONTROLLER_APIS.items())
    assert CONTROLLER_APIS.keys() <= {ApiKey(key) for key in api_key_map}


def test_the_replica_answers_what_its_codec_reads() -> None:
    quorum = {key for key, api in CONTROLLER_APIS.items() if isinstance(api, QuorumRequest)}
    assert quorum == RAFT_APIS.keys()
    assert {key: controller_listener_apis()[key] for key in quorum} == dict(RAFT_APIS)
    # Of the quorum's APIs those that Kafka's schemas give to brokers too; a voter updates itself at a controller only.
    assert {ApiKey.DESCRIBE_QUORUM, ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER} == REPLICAS_APIS
    assert REPLICAS_APIS < FORWARDABLE_APIS


@pytest.mark.parametrize("api_key", BEFORE_BODY, ids=lambda each: each.name)
def test_what_is_judged_before_its_body_is_read_can_be_refused_without_it(api_key: ApiKey) -> None:
    lowest, highest = supported_versions(api_key)
    error = ApiError(ErrorCode.cluster_authorization_failed, "no")
    for version in range(lowest, highest + 1):
        request = ControllerRequest(api_key=api_key, api_version=version, body=None)
        cls = response_class(api_key, version)
        assert encode(build(cls, refusal(request, error)))


@pytest.mark.parametrize("api_key", sorted(CONTROLLER_APIS), ids=lambda each: each.name)
def test_a_refusal_is_not_many_times_as_long_as_what_it_refuses(api_key: ApiKey) -> None:
    """A reason beside each of 199,000 entries of a byte or two would make an answer of many megabytes."""
    version = supported_versions(api_key)[1]
    error = ApiError(ErrorCode.policy_violation, "r" * 100)
    for name, body in requests_of_many_entries(message_types(api_key)[0], 2_000):
        request = ControllerRequest(api_key=api_key, api_version=version, body=body)
        assert len(message_codec.encode(refusal(request, error), version)) < longest_answer(2_000), name
