"""The unary calls of the service `Broker`, over real gRPC, decided by a real controller."""

import re
from collections.abc import Awaitable
from uuid import UUID

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from kquorum.metadata.adapters.controller_channel import ControllerUnavailable
from kquorum.network.errors import NoCommonVersion
from kquorum.wire.proto import broker_pb2 as pb
from kquorum.wire.proto.inspect_pb2 import Endpoint
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.uuids import uuid_to_text
from tests.support.controller_world import CLUSTER_ID, assigned
from tests.support.grpc_harness import failure_of, run
from tests.support.metadata.member_world import MEMBERSHIP, MemberRig, member_rig


def change_of(rig: MemberRig, name: str, *isr: int, **changes: int | bool) -> pb.PartitionChange:
    state = rig.world.partition(name)
    topic_id = uuid_to_text(rig.world.controller.image.topics.by_name[name].id)
    values = {
        "topic_id": topic_id,
        "leader_epoch": state.leader_epoch,
        "partition_epoch": state.partition_epoch,
    }
    members = [pb.InSyncReplica(broker_id=broker_id) for broker_id in isr]
    return pb.PartitionChange(isr=members, **{**values, **changes})  # type: ignore[arg-type]


async def refusal(work: Awaitable[object]) -> tuple[grpc.StatusCode, str, str]:
    """Status, Kafka's error in the trailers, and the words."""
    error = await failure_of(work)
    trailers = {str(key): str(value) for key, value in error.trailing_metadata()}
    kafka = f"{trailers.get('kafka-error', '')} {trailers.get('kafka-error-code', '')}"
    return error.code(), kafka.strip(), error.details() or ""


def test_a_member_is_registered_as_a_broker_is() -> None:
    async def main() -> None:
        async with member_rig() as rig:
            endpoint = Endpoint(name="GRPC", host="h", port=7, security_protocol=1)
            answer = await rig.register(5, rack="r", endpoints=[endpoint], directories=[UUID(int=999).bytes])
            broker = rig.world.controller.image.cluster.brokers[5]
            assert (answer.broker_epoch, answer.cluster_id) == (broker.epoch, CLUSTER_ID)
            assert answer.heartbeat_interval_ms == MEMBERSHIP.heartbeat_interval_ms
            assert answer.session_timeout_ms == MEMBERSHIP.session_timeout_ms
            assert (broker.rack, broker.fenced, broker.log_dirs) == ("r", True, (UUID(int=999),))
            assert [tuple(each) for each in map(_endpoint, broker.end_points)] == [("GRPC", "h", 7, 1)]
            assert (await rig.register(5)).broker_epoch == answer.broker_epoch, "the same process"

    run(main)


def _endpoint(endpoint: object) -> tuple[object, ...]:
    return tuple(getattr(endpoint, name) for name in ("name", "host", "port", "security_protocol"))


def test_a_member_that_names_no_directory_has_the_same_one_in_its_next_life() -> None:
    async def main() -> list[tuple[UUID, ...]]:
        async with member_rig() as rig:
            found = []
            for incarnation in (1, 2):
                await rig.register(5, incarnation)
                found.append(rig.world.controller.image.cluster.brokers[5].log_dirs)
                rig.world.advance(20_000)
            await rig.register(6)
            return [*found, rig.world.controller.image.cluster.brokers[6].log_dirs]

    first, second, other = run(main)
    assert first == second != other
    assert len(first) == len(other) == 1


def test_a_member_is_unfenced_once_it_has_applied_its_registration() -> None:
    async def main() -> None:
        async with member_rig() as rig:
            epoch = (await rig.register(5)).broker_epoch
            behind = await rig.heartbeat(5, epoch, applied_offset=epoch - 1)
            assert (behind.is_caught_up, behind.is_fenced) == (False, True)
            assert (await rig.heartbeat(5, epoch, want_fence=True)).is_fenced
            assert not (await rig.heartbeat(5, epoch)).is_fenced
            assert rig.world.controller.image.cluster.brokers[5].is_active
            assert set(rig.heartbeats.asked) == {ApiKey.BROKER_HEARTBEAT}
            assert rig.others.asked == [ApiKey.BROKER_REGISTRATION]

    run(main)


def test_a_member_leaves_in_good_order() -> None:
    async def main() -> None:
        async with member_rig() as rig:
            five, six = await rig.join(5, 6)
            rig.create(assigned("orders", (5, 6)))
            await rig.heartbeat(5, five, want_shut_down=True)
            assert rig.world.partition("orders").leader == 6
            await rig.heartbeat(6, six)
            assert (await rig.heartbeat(5, five, want_shut_down=True)).should_shut_down
            await rig.stub.Unregister(pb.UnregisterRequest(broker_id=5))
            assert set(rig.world.controller.image.cluster.brokers) == {6}

    run(main)


def test_the_leader_reports_who_is_in_sync_and_each_partition_has_its_outcome() -> None:
    async def main() -> None:
        async with member_rig() as rig:
            five, six = await rig.join(5, 6)
            rig.create(assigned("orders", (5, 6)), assigned("others", (6, 5)))
            changes = [change_of(rig, "orders", 5), change_of(rig, "others", 5, 6)]
            request = pb.AlterPartitionRequest(broker_id=5, broker_epoch=five, partitions=changes)
            outcomes = {each.topic_id: each for each in (await rig.stub.AlterPartition(request)).partitions}
            done, refused = (outcomes[change.topic_id] for change in changes)
            assert (done.error_code, done.error, done.message, list(done.isr)) == (0, "NONE", "", [5])
            assert done.partition_epoch == changes[0].partition_epoch + 1 == 1
            assert (refused.error_code, refused.error) == (42, "INVALID_REQUEST"), "another leads it"
            assert "its leader must ask" in refused.message
            assert rig.world.partition("orders").isr == (5,)
            stale = pb.AlterPartitionRequest(broker_id=5, broker_epoch=five, partitions=changes[:1])
            old = (await rig.stub.AlterPartition(stale)).partitions[0]
            assert old.error == "INVALID_UPDATE_VERSION"
            wider = change_of(rig, "orders", 5, 6)
            wider.isr[1].broker_epoch = six + 1
            request = pb.AlterPartitionRequest(broker_id=5, broker_epoch=five, partitions=[wider])
            assert (await rig.stub.AlterPartition(request)).partitions[0].error == "INELIGIBLE_REPLICA"
            wider.isr[1].broker_epoch = six
            request = pb.AlterPartitionRequest(broker_id=5, broker_epoch=five, partitions=[wider])
            assert list((await rig.stub.AlterPartition(request)).partitions[0].isr) == [5, 6]

    run(main)


def test_what_kafkas_rules_refuse_has_a_status_kafkas_error_and_words() -> None:
    async def main() -> None:
        async with member_rig() as rig:
            (epoch,) = await rig.join(5)
            code, kafka, words = await refusal(rig.register(5, incarnation=2))
            assert (code, kafka) == (grpc.StatusCode.ALREADY_EXISTS, "DUPLICATE_BROKER_REGISTRATION 101")
            assert "another process is registered with this id" in words
            assert re.search(r": in \d+ ms$", words), "when the session of that process ends"
            found = await refusal(rig.heartbeat(5, epoch - 1))
            assert found[:2] == (grpc.StatusCode.FAILED_PRECONDITION, "STALE_BROKER_EPOCH 77")
            found = await refusal(rig.heartbeat(9, 3))
            assert found[1] in ("BROKER_ID_NOT_REGISTERED 102", "STALE_BROKER_EPOCH 77")
            found = await refusal(rig.stub.Unregister(pb.UnregisterRequest(broker_id=9)))
            assert found[:2] == (grpc.StatusCode.NOT_FOUND, "BROKER_ID_NOT_REGISTERED 102")
            assert "9 is not currently registered" in found[2], "the controller's own words"
            found = await refusal(rig.register(6, cluster_id="another"))
            assert found[:2] == (grpc.StatusCode.FAILED_PRECONDITION, "INCONSISTENT_CLUSTER_ID 104")
            feature = pb.SupportedFeature(name="metadata.version", min_level=1, max_level=2)
            found = await refusal(rig.register(6, features=[feature]))
            assert found[:2] == (grpc.StatusCode.FAILED_PRECONDITION, "UNSUPPORTED_VERSION 35")

    run(main)


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (
            ControllerUnavailable(ApiKey.BROKER_HEARTBEAT, 10, "there is no leader"),
            grpc.StatusCode.UNAVAILABLE,
        ),
        (NoCommonVersion("h", 1, "BrokerHeartbeat", (0, 1), (2, 3)), grpc.StatusCode.FAILED_PRECONDITION),
    ],
)
def test_without_an_active_controller_a_member_gets_an_error(
    failure: Exception, status: grpc.StatusCode
) -> None:
    async def main() -> tuple[grpc.StatusCode, str, str]:
        async with member_rig() as rig:
            rig.heartbeats.failure = failure
            return await refusal(rig.heartbeat(5, 1))

    assert run(main) == (status, "", str(failure))


def test_health_and_reflection_know_the_service() -> None:
    async def main() -> tuple[int, set[str]]:
        async with member_rig() as rig:
            request = health_pb2.HealthCheckRequest(service="kquorum.broker.v1.Broker")
            health = await health_pb2_grpc.HealthStub(rig.channel).Check(request)
            call = reflection_pb2_grpc.ServerReflectionStub(rig.channel).ServerReflectionInfo()
            await call.write(reflection_pb2.ServerReflectionRequest(list_services=""))
            listed = await call.read()
            await call.done_writing()
            return health.status, {each.name for each in listed.list_services_response.service}

    status, services = run(main)
    assert status == health_pb2.HealthCheckResponse.SERVING
    assert "kquorum.broker.v1.Broker" in services
