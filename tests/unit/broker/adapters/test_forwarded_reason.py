"""A client's request reaches the controller as it came: what only the controller knows of is not lost on the way."""

from typing import Any

from kquorum.metadata.adapters.controller_channel import ControllerAddress
from kquorum.network.connection import KafkaConnection
from kquorum.network.errors import ConnectionLost
from kquorum.wire.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from kquorum.wire.operator_reason import reason_fields
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.api_calls import message_of
from tests.support.broker.listening_broker import CREATE, broker, created
from tests.support.running_controllers import RunningController, run


def test_the_reason_passes_through_a_broker_that_knows_nothing_of_it() -> None:
    async def work() -> None:
        async with RunningController(1, created) as controller, broker(lambda: controller.address) as node:
            client = await KafkaConnection.connect(
                "127.0.0.1",
                node.client.port,
                "cli",
                5_000,
                header_fields=reason_fields("for the spring\nsale"),
            )
            await client.call(message_of(ApiKey.CREATE_TOPICS, CREATE), 10_000)
            await node.ask(ApiKey.CREATE_TOPICS, CREATE)
            client.close()
            first, second = controller.controller.requests
            assert (first.operator_reason, first.client_id) == ("for the spring sale", "cli")
            assert second.operator_reason is None

    run(work())


def test_the_reason_is_taken_from_a_request_to_the_controller_itself() -> None:
    async def work() -> None:
        async with RunningController(1, created) as controller:
            client = await KafkaConnection.connect(
                *controller.address[1:], "cli", 5_000, header_fields=reason_fields("direct")
            )
            await client.call(message_of(ApiKey.CREATE_TOPICS, CREATE), 10_000)
            client.close()
            (request,) = controller.controller.requests
            assert request.operator_reason == "direct"
            assert request.received_at_ms is not None
            assert request.received_at_ms <= 1234

    run(work())


def test_an_answer_that_cannot_be_encoded_ends_one_connection_and_nothing_else() -> None:
    answers: list[Any] = [CreateTopicsResponse(topics=(CreatableTopicResult(name="x" * 40_000),))]

    def answer(request: Any) -> Any:
        return answers.pop() if answers else created(request)

    async def work() -> None:
        async with RunningController(1, answer) as controller:
            address: ControllerAddress = controller.address
            for is_first in (True, False):
                client = await KafkaConnection.connect(*address[1:], "cli", 5_000)
                try:
                    response: Any = await client.call(message_of(ApiKey.CREATE_TOPICS, CREATE), 10_000)
                except ConnectionLost:
                    assert is_first
                else:
                    assert response.topics
                    assert not is_first
                client.close()

    run(work())
