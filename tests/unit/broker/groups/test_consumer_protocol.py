"""The consumer protocol (KIP-848): joining, reconciliation, fencing, static members, by Kafka's behaviours."""

from tests.support.broker.consumer_world import ClientMember, ConsumerWorld, converge
from tests.support.broker.data_world import ORDERS_ID


def test_members_share_the_partitions() -> None:
    world = ConsumerWorld()
    first, second = ClientMember(world, "first"), ClientMember(world, "second")
    assert first.beat() == "none"
    assert first.orders() == {0, 1, 2, 3}
    converge(world, first, second)
    assert len(first.orders()) == len(second.orders()) == 2
    assert first.orders() | second.orders() == {0, 1, 2, 3}
    assert world.describe().members[0].assignment.topic_partitions[0].topic_id == ORDERS_ID
