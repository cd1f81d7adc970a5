"""Whatever a peer sends, the controller answers with an error code at worst: it lives on, and its image is sound."""

from dataclasses import fields, is_dataclass

import pytest

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.metadata.controller_apis import HANDLERS, QUESTIONS, READERS
from kquorum.metadata.delegation_tokens import HMAC_KEY_CONFIG
from kquorum.metadata.describe.describe_request import DescribeRequest
from kquorum.metadata.image.records import image_values
from kquorum.snapshots.bootstrap import bootstrap_records
from kquorum.wire import message_codec
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from tests.support.api_calls import Values, as_read, described
from tests.support.controller_world import CLUSTER_ID, LEVELS, World, assigned
from tests.support.hostile_requests import HostileRequests
from tests.support.image_invariants import image_violations
from tests.support.image_records import image_from_values, image_records

# The lowest that a log may begin with, two in between, and the newest without and with eligible leader replicas.
CLUSTERS = {"lowest": (4, 0), "3.3": (7, 0), "3.6": (14, 0), "4.0": (25, 0), "newest, ELR": (30, 1)}
SUPPORTED = [
    *LEVELS,
    {"name": "eligible.leader.replicas.version", "min_supported_version": 0, "max_supported_version": 1},
]
SECRET = "of these tests"
ASKED = (*HANDLERS, *READERS, *QUESTIONS)
VERSIONS = [
    (api_key, version)
    for api_key in ASKED
    for low, high in [supported_versions(api_key)]
    for version in range(low, high + 1)
]
# Brokers that come back keep the cluster alive under a fire of hostile requests.
OFTEN = (ApiKey.BROKER_HEARTBEAT, ApiKey.BROKER_REGISTRATION, ApiKey.ALTER_PARTITION, ApiKey.CREATE_TOPICS)


def cluster(level: int, elr: int, seed: int) -> World:
    features = {"eligible.leader.replicas.version": elr} if elr else {}
    config = ControllerConfig(
        bootstrap_records=bootstrap_records(level, features), delegation_token_secret_key=SECRET
    )
    world = World(config, seed).lead()
    # The quorum's own feature is the replica's to judge, and has its own tests.
    vars(world.raft)["upgrade_kraft_version"] = lambda *_, **__: "not in this test"
    world.add_brokers(1, 2, 3, 4, features=SUPPORTED)
    world.create(assigned("t0", [1, 2, 3], [2, 3, 4]), assigned("t1", [4, 1]), assigned("t2", [3]))
    return world


class Barrage:
    """Sends requests one after the other, each answered before the next, and checks what came of it."""

    def __init__(self, level: int, elr: int, seed: int) -> None:
        self.world = cluster(level, elr, seed)
        self.requests = HostileRequests(seed, CLUSTER_ID, SECRET)

    def run(self, count: int) -> None:
        """Every version of every API once, and then what chance brings."""
        random = self.requests.random
        for number in range(count):
            if number < len(VERSIONS):
                api_key, version = VERSIONS[number]
            else:
                api_key = random.choice(OFTEN if random.random() < 0.3 else ASKED)
                version = random.randint(*supported_versions(api_key))
            self._one(api_key, version)
            if number % 25 == 24:
                self.check_snapshot()
                self._revive()
        self.check_snapshot()

    def _one(self, api_key: ApiKey, version: int) -> None:
        before = self.world.controller.committed_image
        body = as_read(api_key, version, self.requests.request(api_key, version, before))
        request = ControllerRequest(api_key=api_key, api_version=version, body=body)
        values = self._describe(request) if api_key in QUESTIONS else self._ask(request)
        answer = message_codec.encode(values, version)
        assert ErrorCode.unknown_server_error not in _codes(values), (request, body, values)
        assert answer, "an answer has bytes"
        found = image_violations(self.world.controller.committed_image, before)
        assert not found, (found, api_key, version, body)

    def _describe(self, request: ControllerRequest) -> Values:
        question = DescribeRequest(
            body=request.body,
            version=request.api_version,
            image=self.world.controller.committed_image,
            principal=request.principal,
            node_id=self.requests.random.choice((1, 3000)),
            is_controller=self.requests.random.random() < 0.5,
            node_configs={HMAC_KEY_CONFIG: SECRET},
        )
        return described(request.api_key, question)

    def _ask(self, request: ControllerRequest) -> Values:
        world = self.world
        answers: list[Values] = []
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
        """Time passes, maybe another controller takes over and hands back, and brokers that are known beat."""
        self.world.advance(self.requests.random.choice((1, 1000, 9500)))
        self.world.commit()
        if self.requests.random.random() < 0.3:
            self.world.follow(7, self.world.raft.leader_epoch + 1)
            self.world.lead(self.world.raft.leader_epoch + 1)
            self.world.commit()
        for broker_id in list(self.world.controller.committed_image.cluster.brokers):
            self.world.heartbeat(broker_id, current_metadata_offset=1 << 40)

    def check_snapshot(self) -> None:
        image = self.world.controller.committed_image
        loaded = image_from_values(image_values(image), image.provenance)
        assert list(map(repr, image_records(loaded))) == list(map(repr, image_records(image)))
        assert loaded == image


def _codes(values: object) -> set[object]:
    if is_dataclass(values):
        values = {field.name: getattr(values, field.name) for field in fields(values)}
    if isinstance(values, dict):
        nested = [_codes(each) for each in values.values()]
        return set().union(*nested, {values.get("error_code")})
    if isinstance(values, list | tuple):
        return set().union(*map(_codes, values)) if values else set()
    return set()


@pytest.mark.parametrize("name", CLUSTERS)
def test_hostile_requests_get_error_codes(name: str) -> None:
    Barrage(*CLUSTERS[name], seed=len(name)).run(len(VERSIONS) + 300)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("name", CLUSTERS)
def test_many_hostile_requests_get_error_codes(name: str, seed: int) -> None:
    Barrage(*CLUSTERS[name], seed=seed).run(1500)
