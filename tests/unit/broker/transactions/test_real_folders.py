"""Coordinators' logs of real clusters are loaded as they are."""

from collections import Counter
from pathlib import Path

from kquorum.broker.coordinators.loading import ShardState
from kquorum.broker.transactions.markers import MarkerQueue
from kquorum.broker.transactions.peers import NOWHERE
from kquorum.broker.transactions.shard import TransactionShard
from kquorum.wire.data_batch import data_headers, read_data_records
from kquorum.wire.transaction_records import decode_transaction_value, encode_transaction_value
from tests.support.broker.transaction_world import TXN_SETTINGS, TransactionWorld


def test_every_transaction_of_every_folder_is_found(real_data: Path) -> None:
    states: Counter[str] = Counter()
    for log in sorted(real_data.glob("*/__transaction_state-*/*.log")):
        world = TransactionWorld()
        partition = world.state_partition()
        shard = TransactionShard(
            partition, lambda: TXN_SETTINGS, lambda: 2, lambda: None, MarkerQueue(lambda _: NOWHERE)
        )
        data = log.read_bytes()
        for position, header in data_headers(data):
            shard.replay_batch(data, position, header)
        shard.load_some(world.now_ms)
        assert shard.state is ShardState.ACTIVE
        states.update(found.state.title for _, found in shard.transactions())
    assert sum(states.values()) > 5
    assert states["Ongoing"] >= 1
    assert states["CompleteCommit"] + states["CompleteAbort"] >= 3


def test_a_value_that_is_read_and_written_again_has_the_same_bytes(real_data: Path) -> None:
    count = 0
    for log in sorted(real_data.glob("*/__transaction_state-*/*.log")):
        data = log.read_bytes()
        for position, header in data_headers(data):
            for record in () if header.is_control else read_data_records(data, position, header):
                if record.value is not None:
                    count += 1
                    version = int.from_bytes(record.value[:2])
                    assert (
                        encode_transaction_value(decode_transaction_value(record.value), version)
                        == record.value
                    )
    assert count > 20
