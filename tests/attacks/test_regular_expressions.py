"""No text of a peer keeps a regular expression busy.

A config of the type double that was set to 32,000 digits and a letter held the active controller for 80 s, a list
with as many blanks for 4 s, and a pattern of 1,000 characters in a client metrics subscription for 5 s. Each text here
takes a program with such an expression hours, and another one a moment.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from kquorum.metadata.configs.rules import check_client_metrics_configs
from kquorum.metadata.configs.validators import PARSERS, InvalidConfigError
from kquorum.network.security import distinguished_names
from kquorum.network.security.distinguished_names import (
    MOST_NAME_CHARACTERS,
    parse_mapping_rules,
    principal_of_certificate,
)
from kquorum.network.security.errors import UnnamedCertificate

LENGTH = 1_000_000
TEXTS = {
    "digits": '"1" * n + "x"',
    "digits and points": '"1." * n',
    "blanks": '"a" + " " * n + "b"',
    "commas": '" ," * n',
    "signs": '"+" * n',
    "exponents": '"1e" * n',
    "pattern": '"client_id=(?i)" + "[\\u00e0-\\uffff]" * (n // 5)',
}
PROGRAM = """
from kquorum.metadata.configs import validators
from kquorum.metadata.configs.rules import check_client_metrics_configs
from kquorum.metadata.configs.validators import InvalidConfigError
from kquorum.metadata.configs.validators import PARSERS
from kquorum.network.api_versions import _SOFTWARE_NAME
n = {length}
text = {text}
try:
    if text.startswith("client_id"):
        check_client_metrics_configs("subscription", {{"match": text}})
except InvalidConfigError:
    pass
for parse in PARSERS.values():
    try:
        parse(text)
    except ValueError:
        pass
for pattern in (_SOFTWARE_NAME, validators._PAIRS, validators._DURATION):
    pattern.fullmatch(text)
print("done")
"""


@pytest.mark.parametrize("name", TEXTS)
def test_a_long_value_of_a_config_is_read_at_once(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(length=LENGTH, text=TEXTS[name])],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "done\n", done.stderr


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a , b,c", ("a", "b", "c")),
        (",", ("", "")),
        (" a,\t,b ", ("a", "", "b")),
        ("", ()),
        ("a b", ("a b",)),
    ],
)
def test_a_list_is_read_as_before(text: str, values: tuple[str, ...]) -> None:
    assert PARSERS["LIST"](text) == values


@pytest.mark.parametrize("text", ["1", "1.", ".5", "-1.5e10", "+.5E-3f", "1d", "NaN", "-Infinity"])
def test_a_double_is_read_as_before(text: str) -> None:
    assert isinstance(PARSERS["DOUBLE"](text), float)


@pytest.mark.parametrize("text", ["", ".", "1.2.3", "e5", "1e", "0x1p3", "1_0", "--1"])
def test_what_is_no_double_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="DOUBLE"):
        PARSERS["DOUBLE"](text)


@pytest.mark.parametrize("pattern", ["(" * 400, "a{4294967296}", "[z-a]", "a)"])
def test_a_pattern_that_cannot_be_compiled_is_refused(pattern: str) -> None:
    """It is compiled by the active controller, which would resign over an error of its own."""
    with pytest.raises(InvalidConfigError, match="Illegal client matching pattern"):
        check_client_metrics_configs("subscription", {"match": f"client_id={pattern}"})


def test_a_certificate_with_a_long_name_meets_no_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules are the operator's, and the name is whatever an authority has signed."""
    rules = parse_mapping_rules("RULE:(.*)a(.*)a(.*)b/$1/,DEFAULT")
    monkeypatch.setattr(distinguished_names, "rfc_2253_name", lambda _der: "CN=" + "a" * MOST_NAME_CHARACTERS)
    with pytest.raises(UnnamedCertificate, match="longer than"):
        principal_of_certificate(rules)(b"certificate")
