"""How far brokers follow: what heartbeats and other reports say, and which brokers have to be waited for."""

from dataclasses import replace
from uuid import UUID

from immutables import Map

from kquorum.metadata.controller.brokers.liveness import Contact
from kquorum.metadata.image.cluster import BrokerRegistration, ClusterImage
from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.metadata.members import BrokerStanding, progress_of_brokers, waited_for

NOW_MS = 1_000_000


def broker(broker_id: int, *, fenced: bool = False, leaving: bool = False) -> BrokerRegistration:
    return BrokerRegistration(
        id=broker_id,
        epoch=broker_id * 10,
        incarnation_id=UUID(int=broker_id),
        fenced=fenced,
        in_controlled_shutdown=leaving,
    )


def image(*brokers: BrokerRegistration) -> MetadataImage:
    return replace(
        MetadataImage.empty(),
        provenance=Provenance(last_contained_offset=100),
        cluster=ClusterImage(brokers=Map({each.id: each for each in brokers})),
    )


CONTACTS = {1: Contact(NOW_MS - 40, 90), 2: Contact(NOW_MS - 700, 95), 3: Contact(NOW_MS - 5, -1)}
BROKERS = progress_of_brokers(
    NOW_MS,
    image(broker(1), broker(2, fenced=True), broker(3), broker(4, leaving=True)),
    CONTACTS.get,
    {1: 99, 2: 80, 4: 100},
)


def test_whichever_report_is_newer_counts() -> None:
    assert [(each.broker_id, each.applied_offset, each.lag) for each in BROKERS] == [
        (1, 99, 1),
        (2, 95, 5),
        (3, -1, -1),
        (4, 100, 0),
    ]
    assert [each.silent_ms for each in BROKERS] == [40, 700, 5, -1]


def test_where_each_stands() -> None:
    assert [each.standing for each in BROKERS] == [
        BrokerStanding.ACTIVE,
        BrokerStanding.FENCED,
        BrokerStanding.ACTIVE,
        BrokerStanding.IN_CONTROLLED_SHUTDOWN,
    ]


def test_a_broker_that_is_ahead_of_the_committed_image_lags_by_nothing() -> None:
    (only,) = progress_of_brokers(NOW_MS, image(broker(1)), {}.get, {1: 120})
    assert only.lag == 0


def test_a_fenced_broker_is_reported_but_not_waited_for() -> None:
    waited = waited_for(99, BROKERS)
    assert [each.broker_id for each in waited.lagging] == [3]
    assert [each.broker_id for each in waited.fenced] == [2]
    assert not waited.is_applied
    assert waited_for(99, BROKERS[:2]).is_applied
    assert waited_for(100, BROKERS[3:]).is_applied, "who leaves still serves"
