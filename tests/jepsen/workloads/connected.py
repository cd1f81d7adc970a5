"""What the workers have in common who speak to one node through a client that is made again with every process."""

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from tests.jepsen.core.client import RawClient, TopicsClient
from tests.jepsen.net.network import Network


class Closable(Protocol):
    def close(self) -> None: ...


Client = TypeVar("Client", bound=Closable)


class Connected(Generic[Client]):
    """Opens and closes; what is invoked is the heir's."""

    def __init__(self, make_client: Callable[[], Client], network: Network) -> None:
        self._make_client = make_client
        self._network = network
        self._client: Client | None = None

    def open(self) -> None:
        if self._client is None:
            self._network.enter_as_client()
        self._client = self._make_client()

    def close(self) -> None:
        if self._client is not None:
            self._client.close()


def raw_client(network: Network, node_id: int, timeout_s: float) -> RawClient:
    """To the node, as clients reach it."""
    address = network.address_of(node_id)
    return RawClient(address.host, address.port, timeout_s)


def topics_client(network: Network, node_id: int, timeout_s: float) -> TopicsClient:
    return TopicsClient(raw_client(network, node_id, timeout_s), timeout_ms=round(timeout_s * 1000))
