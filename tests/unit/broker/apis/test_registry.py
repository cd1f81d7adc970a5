"""Every API of the protocol has one line in the registry, and what each line says holds together."""

import pytest
from kio.schema.index import api_key_map

from kquorum.broker.apis.api import Authorized, Forwarded, Local, Refused, SlicedQuestion
from kquorum.broker.apis.registry import ANSWERED_BY_SERVER, BROKER_APIS, FORWARDED_APIS, NOT_OFFERED
from kquorum.metadata.authorizer.authorization import Authorization
from kquorum.metadata.controller_apis import CONTROLLER_APIS, FORWARDABLE_APIS, QUESTIONS, EntryLimit
from kquorum.network.authentication import BEFORE_AUTHENTICATION
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions

# The APIs that Kafka 4.3's schemas give to controllers' listeners alone; brokers' listeners have all others.
OF_CONTROLLERS_ALONE = {
    ApiKey.VOTE,
    ApiKey.BEGIN_QUORUM_EPOCH,
    ApiKey.END_QUORUM_EPOCH,
    ApiKey.ALTER_PARTITION,
    ApiKey.ENVELOPE,
    ApiKey.FETCH_SNAPSHOT,
    ApiKey.BROKER_REGISTRATION,
    ApiKey.BROKER_HEARTBEAT,
    ApiKey.ALLOCATE_PRODUCER_IDS,
    ApiKey.CONTROLLER_REGISTRATION,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS,
    ApiKey.UPDATE_RAFT_VOTER,
}
OF_BROKERS = {ApiKey(api_key) for api_key in api_key_map} - OF_CONTROLLERS_ALONE


@pytest.mark.parametrize("api_key", sorted(OF_BROKERS | OF_CONTROLLERS_ALONE), ids=lambda each: each.name)
def test_each_api_is_served_or_not_offered_with_a_reason(api_key: ApiKey) -> None:
    places = [api_key in BROKER_APIS, api_key in NOT_OFFERED, api_key in ANSWERED_BY_SERVER]
    assert sum(places) == 1
    if api_key in OF_CONTROLLERS_ALONE:
        assert api_key in NOT_OFFERED
    if api_key in NOT_OFFERED:
        assert len(NOT_OFFERED[api_key]) > 20


def test_a_line_stands_under_its_own_key() -> None:
    assert {api_key: api.api_key for api_key, api in BROKER_APIS.items()} == {
        api_key: api_key for api_key in BROKER_APIS
    }


def test_the_server_below_answers_what_the_registry_leaves_to_it() -> None:
    assert ANSWERED_BY_SERVER == BEFORE_AUTHENTICATION


def test_what_is_forwarded_is_what_a_controller_takes_out_of_envelopes() -> None:
    assert FORWARDED_APIS == FORWARDABLE_APIS


def test_the_questions_of_a_controller_are_answered_with_its_rules() -> None:
    for api_key, question in QUESTIONS.items():
        assert isinstance(BROKER_APIS[api_key], Local | SlicedQuestion)
        assert BROKER_APIS[api_key].authorization is question.authorization


def test_the_entries_of_administrative_requests_and_questions_are_bounded() -> None:
    bounded = {api_key for api_key, api in BROKER_APIS.items() if api.entry_limit is not EntryLimit.NONE}
    assert bounded == FORWARDABLE_APIS | QUESTIONS.keys()
    at_controllers = {
        api_key for api_key, api in CONTROLLER_APIS.items() if api.entry_limit is not EntryLimit.NONE
    }
    assert at_controllers == bounded


def test_every_forwarded_request_is_judged_at_the_controller_or_first_of_all_here() -> None:
    for api in BROKER_APIS.values():
        is_left_to_controller = api.authorization is Authorized.AT_CONTROLLER
        assert not is_left_to_controller or isinstance(api, Forwarded)
        if isinstance(api, Forwarded) and not is_left_to_controller:
            assert isinstance(api.authorization, Authorization)
        if isinstance(api, Refused):
            assert api.authorization is Authorized.NOT_NEEDED


def test_an_unstable_version_is_not_offered() -> None:
    api = BROKER_APIS[ApiKey.INIT_PRODUCER_ID]
    assert api.versions == (supported_versions(ApiKey.INIT_PRODUCER_ID)[0], 5)
    assert BROKER_APIS[ApiKey.METADATA].versions == supported_versions(ApiKey.METADATA)
