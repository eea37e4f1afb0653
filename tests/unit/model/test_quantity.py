"""Quantities: what is accepted, how it is written, how it rounds, and that no text makes it slow."""

import math
import pickle
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trimtab.model.quantity import Quantity, QuantityError, milli_value_of

FORMATS = ["DecimalSI", "BinarySI", "DecimalExponent"]


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        pytest.param("1000m", "1", id="thousandths become units"),
        pytest.param("4000", "4k", id="thousands take a suffix"),
        pytest.param("1024", "1024", id="a decimal number takes no binary suffix"),
        pytest.param("1024Ki", "1Mi", id="1024 of one binary suffix are one of the next"),
        pytest.param("1.5Gi", "1536Mi", id="a binary fraction moves one suffix down"),
        pytest.param("1.1Gi", "1181116006400m", id="a binary fraction that is no whole byte turns decimal"),
        pytest.param("0.5Ki", "512", id="below 1024 there is no binary suffix"),
        pytest.param("1E3", "1e3", id="exponents are written with a small e"),
        pytest.param("1E", "1E", id="a lone E is exa"),
        pytest.param("1e100", "10e99", id="exponents are multiples of three"),
        pytest.param("1000E", "1e21", id="above exa the exponent is written out"),
        pytest.param("1.5n", "2n", id="less than a nano is rounded up"),
        pytest.param("-0.5n", "-1n", id="less than a nano is rounded away from zero"),
        pytest.param("1e-1000000000", "1e-9", id="however small, it is rounded up to a nano"),
        pytest.param("8Ei", "9223372036854775807", id="binary amounts are capped at int64"),
        pytest.param("-9Ei", "-9223372036854775807", id="negative binary amounts are capped alike"),
        pytest.param("007", "7", id="leading zeros are dropped"),
        pytest.param(".", "0", id="a lone point is zero"),
        pytest.param("-", "0", id="a lone sign is zero"),
        pytest.param("Ki", "0", id="a lone suffix is zero"),
        pytest.param("0e999999999999", "0", id="zero stays zero at any exponent"),
    ],
)
def test_canonical_text(text, canonical):
    assert str(Quantity.parse(text)) == canonical


WRONG_FORMAT = "quantities must match the regular expression"
WRONG_SUFFIX = "unable to parse quantity's suffix"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", WRONG_FORMAT, id="nothing"),
        pytest.param(" 10", WRONG_FORMAT, id="leading space"),
        pytest.param("10 ", WRONG_FORMAT, id="trailing space"),
        pytest.param("10\n", WRONG_FORMAT, id="newline"),
        pytest.param("1_000", WRONG_FORMAT, id="underscore"),
        pytest.param("1,000", WRONG_FORMAT, id="comma"),
        pytest.param("\u0661\u0660", WRONG_FORMAT, id="digits of another script"),
        pytest.param("\u00b2", WRONG_FORMAT, id="superscript digit"),
        pytest.param("\u0661\u0660m", WRONG_FORMAT, id="digits of another script with a suffix"),
        pytest.param("1.2.3", WRONG_FORMAT, id="two points"),
        pytest.param("0x10", WRONG_FORMAT, id="hexadecimal"),
        pytest.param("nan", WRONG_FORMAT, id="not a number"),
        pytest.param("inf", WRONG_FORMAT, id="infinity"),
        pytest.param("1K", WRONG_SUFFIX, id="kilo is a small k"),
        pytest.param("1ki", WRONG_SUFFIX, id="kibi is a capital K"),
        pytest.param("1mm", WRONG_SUFFIX, id="two suffixes"),
        pytest.param("1e", WRONG_SUFFIX, id="no exponent after a small e"),
        pytest.param("--1", WRONG_SUFFIX, id="two signs"),
        pytest.param("1e3000000", "at most 1000 digits", id="a ten-byte number of three million digits"),
        pytest.param("1e1000000000000000000000", "at most 1000 digits", id="an exponent beyond int64"),
        pytest.param("9" * 1025, "at most 1024 characters", id="a long text"),
        pytest.param("9" * 1001, "at most 1000 digits", id="a long number"),
    ],
)
def test_what_is_no_quantity_is_refused(text, message):
    with pytest.raises(QuantityError, match=message):
        Quantity.parse(text)


@pytest.mark.parametrize(
    ("text", "value", "milli"),
    [
        ("1500m", 2, 1500),
        ("-1500m", -2, -1500),
        ("1n", 1, 1),
        ("-1n", -1, -1),
        ("123456789n", 1, 124),
        ("0.1Ki", 103, 102400),
        ("12E", 12 * 10**18, 12 * 10**21),
        ("8Ei", 2**63 - 1, (2**63 - 1) * 1000),
    ],
)
def test_values_round_away_from_zero_and_never_wrap(text, value, milli):
    assert (Quantity.parse(text).value(), Quantity.parse(text).milli_value()) == (value, milli)
    assert milli_value_of(text) == milli


@pytest.mark.parametrize(
    ("text", "number"),
    [
        pytest.param("0.123456789", 123456789 * 1e-9, id="digits times a power of ten, as upstream"),
        pytest.param("5u", 5 * 1e-6, id="not always the nearest float"),
        pytest.param("0.1", 0.1, id="a tolerance"),
        pytest.param("1e308", 1e308, id="the largest power of ten"),
        pytest.param("1e309", math.inf, id="the next power of ten"),
        pytest.param("1Ki", 1024.0, id="a binary suffix"),
        pytest.param("3Mi", 3.0 * 2**20, id="a larger binary suffix"),
        pytest.param("1e400", math.inf, id="too large for a float"),
        pytest.param("-1e400", -math.inf, id="too small for a float"),
        pytest.param("1" + "0" * 400, math.inf, id="too many digits for a float"),
        pytest.param("0e400", 0.0, id="zero at any exponent"),
    ],
)
def test_as_float(text, number):
    assert Quantity.parse(text).as_float() == number


def test_a_sum_that_begins_with_zero_takes_the_other_format():
    total = Quantity.zero + Quantity.parse("1Gi")
    assert str(total) == "1Gi"
    assert str(total + Quantity.parse("1k")) == "1073742824"
    assert str(Quantity.parse("1") - Quantity.parse("1Ki")) == "-1023"


def test_equal_amounts_are_one_key_however_written():
    assert {
        Quantity.parse("1"),
        Quantity.parse("1000m"),
        Quantity.from_int(1),
        Quantity.from_milli(1000),
    } == {Quantity.parse("1e0")}
    assert Quantity.parse("1") != 1


def test_sign_and_zero():
    assert [Quantity.parse(text).sign for text in ("-1n", "0", "1n")] == [-1, 0, 1]
    assert Quantity.parse("0Mi").is_zero


def test_a_quantity_survives_pickling_and_shows_itself():
    quantity = Quantity.parse("1.5Gi")
    again = pickle.loads(pickle.dumps(quantity))
    assert (again, again.format, repr(again)) == (quantity, "BinarySI", "Quantity('1536Mi')")


quantities = st.builds(
    Quantity.from_milli, st.integers(-(10**24), 10**24), st.sampled_from(FORMATS)
) | st.builds(Quantity, st.integers(-(10**40), 10**40), st.sampled_from(["DecimalSI", "DecimalExponent"]))


@given(quantities)
@settings(max_examples=150)
def test_reading_what_was_written_gives_the_same_amount(quantity):
    if quantity.format == "BinarySI" and abs(quantity.value()) >= 2**63:
        quantity = Quantity.from_int(quantity.value() % 2**60, "BinarySI")
    assert Quantity.parse(str(quantity)) == quantity


@given(quantities, quantities)
@settings(max_examples=100)
def test_order_and_sums_agree_with_fractions(a, b):
    one, other = Fraction(a.nanos, 10**9), Fraction(b.nanos, 10**9)
    assert ((a < b), (a <= b), (a > b), (a >= b)) == (
        (one < other),
        (one <= other),
        (one > other),
        (one >= other),
    )
    assert Fraction((a + b).nanos, 10**9) == one + other
    assert Fraction((a - b).nanos, 10**9) == one - other
    assert abs(a.value()) == math.ceil(abs(one))


plain = st.from_regex(
    r"[+-]?[0-9]{0,30}(\.[0-9]{0,30})?([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?", fullmatch=True
)


@given(plain.filter(bool))
@settings(max_examples=200)
def test_the_fast_paths_agree_with_the_whole_grammar(text):
    quantity = Quantity.parse(text)
    assert milli_value_of(text) == quantity.milli_value()
    padded = text if text[0] in "+-" else f"+{text}"  # a sign keeps the text off the fast path
    assert Quantity.parse(padded) == quantity
    assert Quantity.parse(padded).as_float() == quantity.as_float()


@given(st.text("0123456789.+-eEinumkKMGTP \n_\u0661", max_size=40) | st.text(max_size=40))
@example("1e99999999999999999999999999")
@example("1e-99999999999999999999999999")
@example("0" * 1000 + "x")  # once cost cubic time in the regular expression
@example("0." + "0" * 1000 + "x")
@example("1" + "E" * 1000)
@settings(max_examples=300)
def test_garbage_is_read_or_refused_and_nothing_else(text):
    try:
        quantity = Quantity.parse(text)
    except QuantityError:
        with pytest.raises(QuantityError):
            milli_value_of(text)
    else:
        assert len(str(quantity)) <= 1024
        assert milli_value_of(text) == quantity.milli_value()


@given(
    st.integers(-(10**9), 10**9),
    st.integers(-(10**9), 10**9),
    st.sampled_from(["", "m", "u", "k"]),
    st.sampled_from(["", "m", "u", "k"]),
)
def test_a_sum_has_the_float_of_its_amount_whatever_its_parts_were_written_in(
    one, other, suffix, other_suffix
):
    total = Quantity.parse(f"{one}{suffix}") + Quantity.parse(f"{other}{other_suffix}")
    assert total.as_float() == pytest.approx(float(Fraction(total.nanos, 10**9)))


@pytest.mark.parametrize("suffix", ["", "n", "m", "Ki", "Mi", "k"])
@pytest.mark.parametrize("digits", ["\u0661", "\u00b2", "1\u0662"], ids=["Arabic", "superscript", "mixed"])
def test_digits_of_other_scripts_are_refused_on_every_path(digits, suffix):
    for read_text in (Quantity.parse, milli_value_of):
        with pytest.raises(QuantityError):
            read_text(digits + suffix)


@pytest.mark.parametrize(
    ("suffix", "most"),
    [("", 18), ("m", 18), ("k", 18), ("Ki", 11), ("Mi", 8), ("Gi", 5), ("Ti", 2), ("Pi", 0)],
)
def test_as_float_counts_in_nanos_beyond_the_digits_that_surely_fit(suffix, most):
    """Upstream's float of a quantity of many digits is that of its nanos; the last bit differs."""
    power = {"m": -3, "k": 3}.get(suffix, 0)
    for digits in (most, most + 1):
        if not digits:
            continue
        quantity = Quantity.parse("7" * digits + suffix)
        counted_in = power if digits <= most else -9
        assert quantity.as_float() == Quantity(quantity.nanos, quantity.format, counted_in).as_float()


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("1" * 1024, None),
        ("0" * 1025, "at most 1024 characters, this one has 1025"),
        ("1e999", None),
        ("1e1000", "at most 1000 digits"),
        ("10e999", "at most 1000 digits"),
        ("0e1000000", None),
    ],
    ids=[
        "1024 characters",
        "1025 characters",
        "1000 digits",
        "1001 digits",
        "two more digits",
        "nothing at all",
    ],
)
def test_the_bounds_of_a_text(text, want):
    if want is None:
        if len(text) < 1000:
            Quantity.parse(text)
        else:
            with pytest.raises(QuantityError, match="1000 digits"):
                Quantity.parse(text)
    else:
        with pytest.raises(QuantityError, match=want):
            Quantity.parse(text)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("1023", "1023"),
        ("1024", "1Ki"),
        ("1025", "1025"),
        ("1048576", "1Mi"),
        ("-1024", "-1Ki"),
        ("0.5", "500m"),
        ("1152921504606846976", "1Ei"),
    ],
)
def test_binary_text_begins_at_1024(text, want):
    quantity = Quantity.parse(text)
    assert str(Quantity(quantity.nanos, "BinarySI")) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [("0.0000000001", "1n"), ("0.00000000101", "2n"), ("-0.0000000001", "-1n"), ("1e-10", "1e-9"), ("9223372036854775807Ki", "9223372036854775807"), ("0.0009Ki", "921600u"), ("0.5Ki", "512")],
)  # fmt: skip
def test_what_lies_below_a_nano_is_rounded_up_and_binary_text_is_capped(text, want):
    assert str(Quantity.parse(text)) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [("7Ki", 7_168_000), ("0Ki", 0), ("5n", 1), ("1000000n", 1), ("1000001n", 2), ("0n", 0), ("3", 3000)],
)
def test_usage_as_the_metrics_server_writes_it(text, want):
    assert milli_value_of(text) == want == Quantity.parse(text).milli_value()


@pytest.mark.parametrize(("whole", "fraction"), [(10, 8), (11, 8), (12, 8), (17, 1), (18, 1), (1, 17)])
def test_whole_and_fraction_digits_count_together(whole, fraction):
    quantity = Quantity.parse("7" * whole + "." + "7" * fraction)
    plain = whole + fraction <= 18 and fraction <= 9
    counted_in = -fraction if plain else -9
    assert quantity.as_float() == Quantity(quantity.nanos, quantity.format, counted_in).as_float()
