"""The controller's long answers ask the memory budget of the node for room before they are made."""

import asyncio
from typing import Any

import pytest

from kquorum.metadata.forwarding import encode_address, encode_principal
from kquorum.network.limits import BudgetLimits
from kquorum.network.request_budget import AnswerInMaking
from kquorum.network.requests import RequestContext
from kquorum.network.server_state import SharedLimits
from kquorum.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kquorum.wire.messages.envelope import EnvelopeRequest
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from kquorum.wire.protocol.headers import EncodedBody, RequestHeader, encode_request
from kquorum.wire.protocol.warm_up import warm_version
from tests.support.acl_worlds import ADMIN
from tests.support.metadata.listener_world import ListenerWorld
from tests.support.network.budget_peers import Peer
from tests.support.network.peers import until

ADDRESS = "127.0.0.1"
VERSION = supported_versions(ApiKey.DELETE_TOPICS)[1]


def deletion(entries: int) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=tuple(DeleteTopicState(name=f"t{number}") for number in range(entries)))


def in_envelope(request: DeleteTopicsRequest) -> EnvelopeRequest:
    warm_version(ApiKey.DELETE_TOPICS, VERSION)
    return EnvelopeRequest(
        request_data=encode_request(ApiKey.DELETE_TOPICS, VERSION, 1, "client", request),
        request_principal=encode_principal(ADMIN),
        client_host_address=encode_address(ADDRESS),
    )


@pytest.mark.parametrize(
    ("request_", "elements"),
    [
        pytest.param(deletion(3_000), 3_000, id="refused for its many entries"),
        pytest.param(deletion(500), 500, id="decided"),
        pytest.param(in_envelope(deletion(3_000)), 0, id="refused in an envelope"),
        pytest.param(in_envelope(deletion(500)), 0, id="decided in an envelope"),
    ],
)
def test_a_long_answer_is_made_when_the_budget_has_room(request_: Any, elements: int) -> None:
    async def ask() -> None:
        shared = SharedLimits(budget=BudgetLimits(max_bytes=100_000))
        slow = Peer(shared.budget, "slow", [])
        slow.holds(100_000, unsent_bytes=100_000)
        version = supported_versions(request_.api_key)[1]
        context = RequestContext(
            1,
            ADDRESS,
            "CONTROLLER",
            RequestHeader(request_.api_key, version, 1, "client"),
            ADMIN,
            frame=bytes(5_000),
            elements=elements,
            making=AnswerInMaking(shared.budget, ADDRESS),
        )
        world = ListenerWorld()
        answers: list[Any] = []
        world.listener.handle(context, request_, answers.append)
        await until(lambda: bool(answers) or shared.budget.waiting == 1)
        assert not answers, "the answer was made without room"
        slow.holds(0)
        await until(lambda: bool(answers))
        assert isinstance(answers[0], EncodedBody)
        assert (shared.budget.held_bytes, shared.budget.waiting) == (0, 0)
        world.listener.stop()

    asyncio.run(ask())
