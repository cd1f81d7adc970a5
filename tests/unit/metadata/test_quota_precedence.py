"""The quota of an address. Which quota of a client counts is in controller/test_mutation_quota.py."""

from immutables import Map

from kquorum.metadata.image.quotas import ClientQuotasImage
from kquorum.metadata.quota_precedence import ConnectionRates


def of_addresses(**rates: float) -> ClientQuotasImage:
    return ClientQuotasImage(
        Map(
            {
                (("ip", None if name == "default" else name.replace("_", ":")),): Map(
                    {"connection_creation_rate": rate}
                )
                for name, rate in rates.items()
            }
        )
    )


def test_an_address_has_its_own_rate_however_it_is_written_or_that_of_all() -> None:
    image = of_addresses(**{"10.0.0.1": 3.0, "0_0_0_0_0_0_0_1": 4.0})
    rates = ConnectionRates(lambda: image)
    assert [rates.of(each) for each in ("10.0.0.1", "::1", "10.0.0.2")] == [3.0, 4.0, None]
    image = of_addresses(**{"10.0.0.1": 3.0, "default": 5.0})
    assert [rates.of(each) for each in ("10.0.0.1", "::1", "10.0.0.2")] == [3.0, 5.0, 5.0]


def test_other_quotas_are_no_rate_of_an_address() -> None:
    image = ClientQuotasImage(Map({(("user", None),): Map({"producer_byte_rate": 1.0})}))
    assert ConnectionRates(lambda: image).of("10.0.0.1") is None
