"""One text for each address: people write them in any form, Kafka's tools write IPv6 out in full, sockets do not."""

import ipaddress
from functools import lru_cache


# Clients ask again and again, and a decision about one takes as long as reading two addresses.
@lru_cache(maxsize=10_000)
def normal_address(host: str) -> str:
    """Java's `0:0:0:0:0:0:0:1` is `::1`, and an IPv4 address within IPv6 is itself. The scope of a link-local address
    is dropped: no socket tells it. What is no address stays as it is."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)
