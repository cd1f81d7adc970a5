"""Which client is held to which rate, by the behaviours of Kafka's ClientQuotaManagerTest."""

from typing import Any

import pytest
from immutables import Map

from kquorum.broker.quota import client_quotas
from kquorum.broker.quota.client_quotas import ClientQuota, ClientQuotas, MeasuredRate
from kquorum.broker.quota.rate import Windows
from kquorum.metadata.image.quotas import ClientQuotasImage

PRODUCE, FETCH, REQUEST = ClientQuota.PRODUCE, ClientQuota.FETCH, ClientQuota.REQUEST
ALICE, BOB = "User:alice", "User:bob"
HOUR_MS = 3_600_000


class Quotas(ClientQuotas):
    """With an image that a test changes."""

    def __init__(self) -> None:
        self.image = ClientQuotasImage()
        super().__init__(lambda: self.image, Windows())

    def set(self, rate: float | None, quota: ClientQuota = PRODUCE, **entity: str | None) -> None:
        """None removes it."""
        kinds = {"client": "client-id", "user": "user"}
        key = tuple(sorted((kinds[kind], name) for kind, name in entity.items()))
        of_entity: Map[str, float] = self.image.entities.get(key, Map())
        of_entity = of_entity.delete(quota) if rate is None else of_entity.set(quota, rate)
        entities = self.image.entities
        self.image = ClientQuotasImage(entities.set(key, of_entity) if of_entity else entities.delete(key))

    def produce(self, amount: float, who: str = ALICE, client: str | None = "app", now_ms: int = 0) -> int:
        return self.charge(PRODUCE, now_ms, who, client, amount)


def test_without_a_quota_nothing_is_measured() -> None:
    quotas = Quotas()
    assert quotas.produce(10**12) == 0
    assert quotas.most_in_window(PRODUCE, ALICE, "app") is None
    quotas.set(100, user="bob")
    assert quotas.produce(10**12) == 0
    assert quotas.figures(0).rates == ()
    assert quotas.is_in_force(PRODUCE)
    assert not quotas.is_in_force(FETCH)


def test_a_users_clients_share_its_quota_and_those_of_a_pair_have_their_own() -> None:
    quotas = Quotas()
    quotas.set(100, user="alice")
    assert quotas.produce(1_000, client="one") == 0
    assert quotas.produce(100, client="two") == 1_000
    quotas.set(100, user="alice", client=None)
    # Another kind of limit: counting starts again, for each pair.
    assert quotas.produce(1_000, client="one") == 0
    assert quotas.produce(1_000, client="two") == 0
    assert quotas.produce(100, client="two") == 1_000


def test_a_client_ids_quota_is_shared_by_all_users() -> None:
    quotas = Quotas()
    quotas.set(100, client=None)
    assert quotas.produce(1_000, who=ALICE) == 0
    assert quotas.produce(100, who=BOB) == 1_000
    assert quotas.produce(1_000, who=BOB, client="another") == 0
    # Kafka's default of client ids holds for those that are named.
    assert quotas.produce(10**9, who=BOB, client=None) == 0


def test_kinds_of_quota_count_for_themselves() -> None:
    quotas = Quotas()
    quotas.set(100, PRODUCE, user="alice")
    quotas.set(200, FETCH, client="app")
    assert quotas.produce(1_100) == 1_000
    assert quotas.charge(FETCH, 0, ALICE, "app", 2_000) == 0
    assert quotas.charge(FETCH, 0, ALICE, "app", 200) == 1_000
    assert quotas.most_in_window(FETCH, ALICE, "app") == 2_000


def test_a_change_counts_at_once_for_what_was_measured_before() -> None:
    quotas = Quotas()
    quotas.set(100, user="alice")
    assert quotas.produce(1_200) == 2_000
    quotas.set(200, user="alice")
    assert quotas.throttle_ms(PRODUCE, 0, ALICE, "app") == 0
    quotas.set(60, user="alice")
    assert quotas.throttle_ms(PRODUCE, 0, ALICE, "app") == 10_000
    quotas.set(None, user="alice")
    assert quotas.produce(10**12) == 0


def test_a_request_quota_throttles_for_a_window_at_most() -> None:
    quotas = Quotas()
    quotas.set(1, REQUEST, user="alice")
    assert quotas.charge(REQUEST, 0, ALICE, "app", 10) == 0
    assert quotas.charge(REQUEST, 0, ALICE, "app", 0.5) == 500
    assert quotas.charge(REQUEST, 0, ALICE, "app", 10_000) == 1_000


def test_time_after_the_answer_counts_for_the_next_request() -> None:
    quotas = Quotas()
    quotas.set(1, REQUEST, user="alice")
    quotas.charge_afterwards(REQUEST, 0, ALICE, "app", 10.5)
    assert quotas.charge(REQUEST, 0, ALICE, "app", 0) == 500


def test_the_metrics_name_the_entity_that_has_the_quota() -> None:
    quotas = Quotas()
    quotas.set(100, user="alice")
    quotas.produce(1_100)
    quotas.note_exempt(0, 30)
    figures = quotas.figures(0)
    assert figures.rates == (MeasuredRate(PRODUCE, "alice", "", 110.0, 1_000.0),)
    assert figures.throttled_connections == {PRODUCE: 1, FETCH: 0, REQUEST: 0}
    assert figures.exempt_request_time == 3
    assert quotas.figures(1_000).throttled_connections[PRODUCE] == 0
    assert quotas.figures(HOUR_MS).rates == ()


def test_rates_of_clients_that_choose_new_ids_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_quotas, "RATES_KEPT", 3)
    monkeypatch.setattr(client_quotas, "_ALLOWANCES_KEPT", 3)
    quotas = Quotas()
    quotas.set(100, client=None)
    assert quotas.produce(1_100, client="busy") == 1_000
    for number in range(10):
        quotas.produce(1, client=f"id-{number}")
        assert quotas.produce(0, client="busy") == 1_000, "what is used is kept"
    assert len(quotas.figures(0).rates) == 3


def test_what_was_not_used_for_an_hour_is_dropped() -> None:
    quotas = Quotas()
    quotas.set(100, client=None)
    quotas.produce(1, client="old")
    quotas.produce(1, client="new", now_ms=HOUR_MS)
    measured: Any = quotas._kinds[PRODUCE].measured
    assert [client for _, client in measured] == ["new"]
