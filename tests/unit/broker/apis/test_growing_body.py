"""An answer that is encoded part by part has the bytes of one that is encoded whole."""

import pytest

from kquorum.broker.apis.growing_body import GrowingBody
from kquorum.wire.message_codec import encode
from kquorum.wire.messages.list_groups import ListedGroup, ListGroupsResponse
from kquorum.wire.messages.list_transactions import ListTransactionsResponse, TransactionState


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize("sizes", [(), (0,), (1, 2), (130, 0, 3), (127,), (1, 126)])
def test_parts_make_the_whole(version: int, sizes: tuple[int, ...]) -> None:
    made: list[int] = []
    body = GrowingBody(lambda entries: ListGroupsResponse(groups=entries), version, made.append)
    groups = [ListedGroup(group_id=f"group {number}", group_state="Empty") for number in range(sum(sizes))]
    left = iter(groups)
    for size in sizes:
        body.add([next(left) for _ in range(size)])
    assert body.whole().data == encode(ListGroupsResponse(groups=tuple(groups)), version)
    assert len(made) == len(sizes)
    assert bool(sum(made)) == bool(groups)


def test_other_fields_stay() -> None:
    def response(entries: tuple[TransactionState, ...]) -> ListTransactionsResponse:
        return ListTransactionsResponse(unknown_state_filters=("a", "b" * 200), transaction_states=entries)

    body = GrowingBody(response, 1, lambda _size: None)
    states = tuple(TransactionState(transactional_id=f"t{number}", producer_id=number) for number in range(5))
    body.add(states[:3])
    body.add(states[3:])
    assert body.whole().data == encode(response(states), 1)
