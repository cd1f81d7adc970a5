"""An authenticated user renews a delegation token in a loop; the metadata log of every node grows with each record."""

from tests.support.metadata.delegation_tokens import DAY_MS, HOUR_MS, create, renew, token_world

DURATION_MS = 15_000
TIMES = 500
# What an owner may write at once, and in so many seconds, with what stands around the names.
MOST_BYTES = 600_000


def log_bytes_after(*periods_ms: int) -> int:
    world = token_world()
    renewers = [
        {"principal_type": "User", "principal_name": f"{number:03}{'x' * 150}"} for number in range(98)
    ]
    password = create(world, renewers=renewers).hmac
    before = sum(len(batch.data) for batch in world.raft.batches)
    for number in range(TIMES):
        world.now_ms += DURATION_MS // TIMES
        renew(world, password, periods_ms[number % len(periods_ms)])
    return sum(len(batch.data) for batch in world.raft.batches) - before


def test_the_same_renewal_again_and_again_writes_nothing() -> None:
    assert log_bytes_after(-1) == 0


def test_an_expiry_that_goes_to_and_fro_writes_what_the_rate_allows() -> None:
    assert 100_000 < log_bytes_after(HOUR_MS, DAY_MS) < MOST_BYTES
