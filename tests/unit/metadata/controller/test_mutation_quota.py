"""The controller mutation quota (KIP-599): which quota counts, the bucket, strict and permissive versions."""

from typing import Any

import pytest
from immutables import Map

from kquorum.metadata.controller.mutation_quotas import (
    CONTROLLER_MUTATION_RATE,
    MutationCharges,
    MutationQuotas,
)
from kquorum.metadata.controller.requests import ApiError, ControllerRequest
from kquorum.metadata.image.quotas import ClientQuotasImage, QuotaEntity
from kquorum.metadata.quota_precedence import Allowance, allowance_of
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.configs import ClientQuotaRecord, EntityData
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.record_frame import encode_record
from tests.support.controller_world import World, topic

ALICE, ANY_USER = ("user", "alice"), ("user", None)
APP, ANY_CLIENT = ("client-id", "app"), ("client-id", None)

# From the most specific on, as Kafka's ClientQuotaManager looks them up; and whose bucket it is then.
ORDER: list[tuple[QuotaEntity, tuple[str, str]]] = [
    ((APP, ALICE), ("alice", "app")),
    ((ANY_CLIENT, ALICE), ("alice", "app")),
    ((ALICE,), ("alice", "")),
    ((APP, ANY_USER), ("alice", "app")),
    ((ANY_CLIENT, ANY_USER), ("alice", "app")),
    ((ANY_USER,), ("alice", "")),
    ((APP,), ("", "app")),
    ((ANY_CLIENT,), ("", "app")),
]


def image(*entities: QuotaEntity, rate: float = 1.0) -> ClientQuotasImage:
    """Each entity with a rate one higher than the one before."""
    quotas = {entity: Map({CONTROLLER_MUTATION_RATE: rate + index}) for index, entity in enumerate(entities)}
    return ClientQuotasImage(Map(quotas))


def charge(
    quotas: MutationQuotas, permits: int, now_ms: int, *, strict: bool = True, rate: float = 2.0
) -> int | ErrorCode:
    """The throttle time, or the refusal."""
    request = ControllerRequest(
        api_key=ApiKey.CREATE_TOPICS,
        api_version=6 if strict else 5,
        body=None,
        principal="User:alice",
        client_id="app",
    )
    charges = MutationCharges()
    try:
        quotas.charge(image((ALICE,), rate=rate), request, permits, now_ms, charges)
    except ApiError as error:
        assert charges.throttle_time_ms > 0
        return error.code
    return charges.throttle_time_ms


@pytest.mark.parametrize("place", range(len(ORDER)))
def test_the_most_specific_quota_counts(place: int) -> None:
    entities = [entity for entity, _ in ORDER[place:]]
    assert allowance_of(image(*entities), CONTROLLER_MUTATION_RATE, "User:alice", "app") == Allowance(
        ORDER[place][1], 1.0
    )


def test_quotas_of_others_and_of_other_kinds_are_no_limit() -> None:
    others = image((("user", "bob"),), (("client-id", "other"),), (("ip", None),))
    assert allowance_of(others, CONTROLLER_MUTATION_RATE, "User:alice", "app") is None
    rates = ClientQuotasImage(Map({(ALICE,): Map({"producer_byte_rate": 1.0})}))
    assert allowance_of(rates, CONTROLLER_MUTATION_RATE, "User:alice", "app") is None
    assert allowance_of(image((ANY_CLIENT,)), CONTROLLER_MUTATION_RATE, "User:alice", None) is None


def test_strict_a_full_bucket_may_be_overdrawn_once_and_is_closed_until_it_is_back() -> None:
    quotas = MutationQuotas(window_ms=10_000)  # at 2 a second: 20 tokens
    assert charge(quotas, 30, 0) == 0
    assert charge(quotas, 1, 0) is ErrorCode.throttling_quota_exceeded
    assert charge(quotas, 1, 4_999) is ErrorCode.throttling_quota_exceeded
    assert charge(quotas, 1, 5_000) == 0, "a bucket at zero is open"
    assert charge(quotas, 1, 5_000) is ErrorCode.throttling_quota_exceeded


def test_permissive_everything_is_done_and_the_client_throttled() -> None:
    quotas = MutationQuotas(window_ms=10_000)
    assert charge(quotas, 20, 0, strict=False) == 0
    assert charge(quotas, 3, 0, strict=False) == 1_500
    assert charge(quotas, 3, 500, strict=False) == 2_500


def test_a_bucket_holds_no_more_than_its_window() -> None:
    quotas = MutationQuotas(window_ms=10_000)
    assert charge(quotas, 20, 0) == 0
    assert charge(quotas, 21, 1_000_000) == 0
    assert charge(quotas, 1, 1_000_000) is ErrorCode.throttling_quota_exceeded


def test_a_clock_that_goes_back_gives_nothing() -> None:
    quotas = MutationQuotas(window_ms=10_000)
    assert charge(quotas, 22, 10_000) == 0
    assert charge(quotas, 1, 1_000) is ErrorCode.throttling_quota_exceeded


def test_idle_buckets_are_forgotten() -> None:
    quotas = MutationQuotas(window_ms=10_000)
    for number in range(3000):
        request = ControllerRequest(
            api_key=ApiKey.CREATE_TOPICS, api_version=6, body=None, client_id=f"client-{number}"
        )
        quotas.charge(image((ANY_CLIENT,)), request, 15, number * 100, MutationCharges())
    assert len(quotas._buckets) <= 1000


# Through the write path


def limited_world(rate: float) -> World:
    """Everybody may create `rate` partitions a second, and eleven times that at once."""
    world = World().lead().add_brokers(0)
    entity = (EntityData(entity_type="user", entity_name=None),)
    record = ClientQuotaRecord(entity=entity, key=CONTROLLER_MUTATION_RATE, value=rate)
    world.raft.append(world.now_ms, [(None, encode_record(record))])
    world.lead(2)
    world.commit()
    return world


def entries(world: World, version: int, *topics: dict[str, Any]) -> tuple[list[ErrorCode], int]:
    answer = world.ask(ApiKey.CREATE_TOPICS, version, topics=list(topics), timeout=1000)
    return [entry.error_code for entry in answer.topics], answer.throttle_time_ms


def test_a_request_that_runs_out_keeps_what_it_had_done() -> None:
    world = limited_world(1.0)
    first, second = topic("a", num_partitions=15), topic("b")
    codes, throttle_time = entries(world, 7, first, second)
    assert codes == [ErrorCode.none, ErrorCode.throttling_quota_exceeded]
    assert throttle_time == 4000
    assert set(world.controller.committed_image.topics.by_name) == {"a"}
    world.advance(4000)
    world.commit()
    assert entries(world, 7, second) == ([ErrorCode.none], 0)


def test_an_old_request_is_carried_out_and_throttled() -> None:
    world = limited_world(1.0)
    assert entries(world, 5, topic("a", num_partitions=15)) == ([ErrorCode.none], 4000)
    codes, throttle_time = entries(world, 5, topic("b"))
    assert codes == [ErrorCode.none]
    assert throttle_time == 5000


def test_deleting_costs_as_much_as_creating() -> None:
    world = limited_world(1.0)
    entries(world, 7, topic("a", num_partitions=11))
    assert world.delete("a")["a"].error_code is ErrorCode.none
    assert world.delete("gone")["gone"].error_code is ErrorCode.unknown_topic_or_partition
    codes, throttle_time = entries(world, 7, topic("b"))
    assert codes == [ErrorCode.throttling_quota_exceeded]
    assert throttle_time == 11_000


@pytest.mark.parametrize(("version", "refused"), [(2, False), (3, True)])
def test_new_partitions_cost_what_is_added(version: int, refused: bool) -> None:
    world = limited_world(1.0)
    entries(world, 7, topic("a", num_partitions=9))
    codes: list[ErrorCode] = []
    for count in (12, 13):
        asked = [{"name": "a", "count": count, "assignments": None}]
        answer = world.ask(ApiKey.CREATE_PARTITIONS, version, topics=asked, timeout=1000, validate_only=False)
        codes += [entry.error_code for entry in answer.results]
    assert codes == [ErrorCode.none, ErrorCode.throttling_quota_exceeded if refused else ErrorCode.none]
    assert answer.throttle_time_ms == (1000 if refused else 2000)


@pytest.mark.parametrize("rate", [1e-300, 5e-324, 1e-9])
def test_the_time_to_wait_is_one_that_an_answer_can_hold(rate: float) -> None:
    quotas = MutationQuotas(window_ms=10_000)
    assert charge(quotas, 3, 0, strict=False, rate=rate) == 2**31 - 1


def test_no_rate_at_all_is_a_closed_bucket() -> None:
    """Neither we nor Kafka write it, but a log may hold it."""
    quotas = MutationQuotas(window_ms=10_000)
    assert charge(quotas, 1, 0, rate=0.0) == 0
    assert charge(quotas, 1, 10_000, rate=0.0) is ErrorCode.throttling_quota_exceeded
