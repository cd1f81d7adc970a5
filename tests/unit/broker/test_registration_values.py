"""What a broker's registration says of the process before it."""

from uuid import UUID

from kquorum.broker.identity import BrokerIdentity, LifecycleConfig
from kquorum.broker.lifecycle import BrokerLifecycle
from kquorum.wire.messages.broker_registration import BrokerRegistrationRequest
from tests.support.broker_services import LowestRandomSource


def test_the_previous_broker_epoch_and_the_directories_are_sent() -> None:
    identity = BrokerIdentity(
        broker_id=1,
        cluster_id="c",
        incarnation_id=UUID(int=9 << 64),
        listeners=(),
        features=(),
        rack="east",
        log_dirs=(UUID(int=5), UUID(int=4)),
        previous_broker_epoch=41,
    )
    lifecycle = BrokerLifecycle(identity, LifecycleConfig(), LowestRandomSource())
    lifecycle.start(0)
    request = lifecycle.maybe_next_request(0, -1)
    assert isinstance(request, BrokerRegistrationRequest)
    assert request.previous_broker_epoch == 41, "else each restart in order counts as a crash"
    assert request.log_dirs == (UUID(int=4), UUID(int=5))
    assert request.rack == "east"
