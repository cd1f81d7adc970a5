"""Whatever a peer sends, the controller answers with an error code at worst: it lives on, and its image is sound."""

import pytest
from kio.schema.errors import ErrorCode

from metadata.controller.config import ControllerConfig
from metadata.controller.handlers import HANDLERS, READERS
from metadata.controller.requests import ControllerRequest, Values
from metadata.describe.question import Question
from metadata.describe.table import DESCRIBERS
from metadata.image.records import image_from_values, image_records, image_values
from snapshots.bootstrap import bootstrap_records
from tests.support.hostile_requests import HostileRequests
from tests.support.image_invariants import image_violations
from tests.unit.metadata.controller_world import CLUSTER_ID, LEVELS, World, assigned
from wire.codec import encode
from wire.protocol.api_keys import ApiKey
from wire.protocol.apis import response_class
from wire.protocol.entities import build

# The lowest that a log may begin with, two in between, and the newest without and with eligible leader replicas.
CLUSTERS = {"lowest": (4, 0), "3.3": (7, 0), "3.6": (14, 0), "4.0": (25, 0), "newest, ELR": (30, 1)}
SUPPORTED = [
    *LEVELS,
    {"name": "eligible.leader.replicas.version", "min_supported_version": 0, "max_supported_version": 1},
]
ASKED = (*HANDLERS, *READERS, *DESCRIBERS)
# Brokers that come back keep the cluster alive under a fire of hostile requests.
OFTEN = (ApiKey.BROKER_HEARTBEAT, ApiKey.BROKER_REGISTRATION, ApiKey.ALTER_PARTITION, ApiKey.CREATE_TOPICS)


def cluster(level: int, elr: int, seed: int) -> World:
    features = {"eligible.leader.replicas.version": elr} if elr else {}
    world = World(ControllerConfig(bootstrap_records=bootstrap_records(level, features)), seed).lead()
    # The quorum's own feature is the replica's to judge, and has its own tests.
    vars(world.raft)["upgrade_kraft_version"] = lambda *_, **__: "not in this test"
    world.add_brokers(1, 2, 3, 4, features=SUPPORTED)
    world.create(assigned("t0", [1, 2, 3], [2, 3, 4]), assigned("t1", [4, 1]), assigned("t2", [3]))
    return world


class Barrage:
    """Sends requests one after the other, each answered before the next, and checks what came of it."""

    def __init__(self, level: int, elr: int, seed: int) -> None:
        self.world = cluster(level, elr, seed)
        self.requests = HostileRequests(seed, CLUSTER_ID)
        self.answers: dict[ApiKey, int] = {}

    def run(self, count: int) -> None:
        for number in range(count):
            self._one()
            if number % 25 == 24:
                self.check_snapshot()
                self._revive()
        self.check_snapshot()

    def _one(self) -> None:
        random = self.requests.random
        api_key = random.choice(OFTEN if random.random() < 0.3 else ASKED)
        before = self.world.controller.committed_image
        version, body = self.requests.request(api_key, before)
        request = ControllerRequest(api_key=api_key, api_version=version, body=body)
        values = self._describe(request) if api_key in DESCRIBERS else self._ask(request)
        answer = encode(build(response_class(api_key, version), values))
        assert ErrorCode.unknown_server_error not in _codes(values), (request, body, values)
        assert answer, "an answer has bytes"
        self.answers[api_key] = self.answers.get(api_key, 0) + 1
        found = image_violations(self.world.controller.committed_image, before)
        assert not found, (found, api_key, version, body)

    def _describe(self, request: ControllerRequest) -> Values:
        question = Question(
            body=request.body,
            version=request.api_version,
            image=self.world.controller.committed_image,
            principal=request.principal,
            node_id=self.requests.random.choice((1, 3000)),
            is_controller=self.requests.random.random() < 0.5,
        )
        return DESCRIBERS[request.api_key](question)

    def _ask(self, request: ControllerRequest) -> Values:
        world, answers = self.world, []
        world.controller.handle_request(world.now_ms, request, answers.append)
        world.commit()
        # What goes on in slices.
        for _ in range(1000):
            if answers and world.controller.next_deadline_ms() != 0:
                break
            world.controller.handle_time(world.now_ms)
            world.commit()
        assert len(answers) == 1, (request, request.body)
        values: Values = answers[0]
        return values

    def _revive(self) -> None:
        """Time passes, and brokers that are known beat."""
        self.world.advance(self.requests.random.choice((1, 1000, 9500)))
        self.world.commit()
        for broker_id in list(self.world.controller.committed_image.cluster.brokers):
            self.world.heartbeat(broker_id, current_metadata_offset=1 << 40)

    def check_snapshot(self) -> None:
        image = self.world.controller.committed_image
        loaded = image_from_values(image_values(image), image.provenance)
        assert list(map(repr, image_records(loaded))) == list(map(repr, image_records(image)))
        assert loaded == image


def _codes(values: object) -> set[object]:
    if isinstance(values, dict):
        nested = [_codes(each) for each in values.values()]
        return set().union(*nested, {values.get("error_code")})
    if isinstance(values, list | tuple):
        return set().union(*map(_codes, values)) if values else set()
    return set()


@pytest.mark.parametrize("name", CLUSTERS)
def test_hostile_requests_get_error_codes(name: str) -> None:
    barrage = Barrage(*CLUSTERS[name], seed=len(name))
    barrage.run(400)
    assert set(barrage.answers) == set(ASKED)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("name", CLUSTERS)
def test_many_hostile_requests_get_error_codes(name: str, seed: int) -> None:
    Barrage(*CLUSTERS[name], seed=seed).run(1500)
