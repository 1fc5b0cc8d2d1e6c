from __future__ import annotations

import json
import time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.web.strict_json import DEEPEST, MalformedJson, parse

REFUSED = {
    "nothing": b"",
    "white space": b" \n",
    "truncated": b'{"a": [1, 2',
    "unterminated string": b'{"a": "b',
    "trailing comma": b"[1,]",
    "two values": b"{} {}",
    "single quotes": b"{'a': 1}",
    "NaN": b'{"a": NaN}',
    "Infinity": b'{"a": Infinity}',
    "minus Infinity": b"[-Infinity]",
    "1e309": b'{"a": 1e309}',
    "minus 1e309": b"[-1e309]",
    "exponent beyond any": b"[1e9999999999999999999999]",
    "310 digits": b"[" + b"9" * 310 + b"]",
    "5,000 digits": b"[" + b"9" * 5000 + b"]",
    "5,000 digits and a fraction": b"[" + b"9" * 5000 + b".5]",
    "leading zero": b"[01]",
    "hexadecimal": b"[0x10]",
    "byte-order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "UTF-16 without mark": '{"a": 1}'.encode("utf-16-le"),
    "UTF-32": '{"a": 1}'.encode("utf-32"),
    "Latin-1": '{"a": "é"}'.encode("latin-1"),
    "encoded surrogate": b'{"a": "\xed\xa0\x80"}',
    "overlong encoding": b'{"a": "\xc0\xaf"}',
    "NUL": b'{"a": \x00}',
    "control character in a string": b'{"a": "\x01"}',
    "duplicate keys": b'{"a": 1, "b": 2, "a": 3}',
    "duplicate keys inside": b'[{"x": {"a": 1, "\\u0061": 2}}]',
    "deep arrays": b"[" * 200_000,
    "deep arrays, closed": b"[" * 100_000 + b"]" * 100_000,
    "deep objects": b'{"a":' * 100_000,
    "deep, mixed": b'[{"a":' * 50_000,
    "deeper by one": b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1),
}
"""Bodies that no route may accept."""


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_what_is_not_plain_json_in_utf_8_is_refused(body: bytes):
    with pytest.raises(MalformedJson) as refusal:
        parse(body)
    assert str(refusal.value).endswith(".")
    assert len(str(refusal.value)) < 300


def test_brackets_in_strings_nest_nothing():
    text = json.dumps({"a": "[{" * 1000, 'b"[\\': '\\"[' * 100})
    assert parse(text.encode()) == json.loads(text)


def test_the_deepest_nesting_is_accepted():
    body = b"[" * DEEPEST + b"]" * DEEPEST
    assert parse(body) == json.loads(body)


def test_numbers_keep_every_digit_that_was_sent():
    assert parse(b"[0.1000000000000000055511151231257827]") == [
        Decimal("0.1000000000000000055511151231257827")
    ]
    assert parse(b"[9007199254740993, -0.0, 1E+2]") == [9007199254740993, Decimal("-0.0"), 100]
    assert parse(b"[1e-9999999999999999999999]") == [0]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_what_json_writes_is_read_back(value: object):
    assert parse(json.dumps(value).encode()) == value
    assert parse(json.dumps(value, ensure_ascii=True, indent=1).encode()) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_double_is_read_back(value: float):
    (read,) = parse(json.dumps([value]).encode())
    assert float(read) == value


@pytest.mark.parametrize(
    "body",
    [b'"' + b'\\"' * 500_000, b'"\\' * 300_000, b"[" * 1_000_000, b'{"a":1,' * 140_000],
)
def test_a_hostile_megabyte_takes_no_time(body: bytes):
    began = time.process_time()
    with pytest.raises(MalformedJson):
        parse(body)
    assert time.process_time() - began < 2
