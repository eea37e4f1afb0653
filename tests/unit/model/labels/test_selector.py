"""Label selectors: the text form, the JSON form, matching, and the words for what is wrong."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trimtab.model.json import wire
from trimtab.model.labels.names import label_key_problems, label_value_problems
from trimtab.model.labels.requirement import require
from trimtab.model.labels.selector import (
    EVERYTHING,
    MAX_REQUIREMENTS,
    NOTHING,
    LabelSelector,
    LabelSelectorRequirement,
    Selector,
    SelectorError,
    go_string,
    selector_problems,
)


@pytest.mark.parametrize(
    ("text", "labels", "want"),
    [
        pytest.param("", {}, True, id="the empty selector matches everything"),
        pytest.param("app=web", {"app": "web"}, True, id="equal"),
        pytest.param("app==web", {"app": "api"}, False, id="not equal"),
        pytest.param("app=", {"app": ""}, True, id="the empty value is a value"),
        pytest.param("app=", {}, False, id="the empty value is not an absent label"),
        pytest.param("app!=web", {}, True, id="!= holds where the label is absent"),
        pytest.param("app notin (web)", {}, True, id="notin holds where the label is absent"),
        pytest.param("app in (web,api)", {"app": "api"}, True, id="one of several"),
        pytest.param("app in (web,api)", {}, False, id="none of several"),
        pytest.param("app", {"app": ""}, True, id="exists"),
        pytest.param("!app", {"app": ""}, False, id="does not exist"),
        pytest.param("size>5", {"size": "6"}, True, id="greater"),
        pytest.param("size>5", {"size": "5"}, False, id="not greater"),
        pytest.param("size<5", {"size": "-3"}, True, id="less, with a sign"),
        pytest.param("size>5", {"size": "010"}, True, id="leading zeros are decimal"),
        pytest.param("size>5", {"size": "6.0"}, False, id="no integer never compares"),
        pytest.param("size>5", {"size": "9223372036854775808"}, False, id="beyond int64 never compares"),
        pytest.param("size>5", {"size": "\u0667"}, False, id="digits of another script never compare"),
        pytest.param("app=web,!old,size<5", {"app": "web", "size": "4"}, True, id="all must hold"),
        pytest.param(
            "app=web,!old,size<5", {"app": "web", "size": "4", "old": ""}, False, id="one does not hold"
        ),
    ],
)
def test_matches(text, labels, want):
    assert Selector.parse(text).matches(labels) is want


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        pytest.param(" b = x , a ", "a,b=x", id="sorted by key, without spaces"),
        pytest.param("a in (y,x,y)", "a in (x,y)", id="values sorted, each once"),
        pytest.param("a notin ()", "a notin ()", id="no value means the empty value"),
        pytest.param("in in (in,notin)", "in in (in,notin)", id="operators may be names"),
        pytest.param("a>5,a<7", "a>5,a<7", id="one key twice keeps its order"),
    ],
)
def test_canonical_text(text, canonical):
    assert str(Selector.parse(text)) == canonical
    assert Selector.parse(canonical) == Selector.parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("=web", "found '=', expected: !, identifier, or 'end of string'"),
        ("app=a b", "found 'b', expected: ',' or 'end of string'"),
        ("app,", "found '', expected: identifier after ','"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("app in (a", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("app in (!", "unable to parse requirement: found '!', expected: ',', ')' or identifier"),
        ("app in a", "unable to parse requirement: found 'a' expected: '('"),
        ("app is a", "unable to parse requirement: found 'is', expected: in, notin, =, ==, !=, gt, lt"),
    ],
)
def test_malformed_text_is_refused_in_upstreams_words(text, message):
    with pytest.raises(SelectorError) as caught:
        Selector.parse(text)
    assert str(caught.value) == message


def test_all_that_is_wrong_with_a_requirement_is_said():
    with pytest.raises(SelectorError) as caught:
        require("size", "gt", ("-a",))
    assert str(caught.value).startswith("[values[0]: Invalid value")
    assert "values[0][size]: Invalid value" in str(caught.value)
    with pytest.raises(SelectorError, match="exact-match compatibility requires one single value"):
        require("size", "=", ("a", "b"))
    with pytest.raises(SelectorError, match="exactly one value is required"):
        require("size", "lt")


def test_an_absent_label_selector_selects_nothing_and_an_empty_one_everything():
    nothing, everything = Selector.from_label_selector(None), Selector.from_label_selector(LabelSelector())
    assert (nothing, everything) == (NOTHING, EVERYTHING)
    assert (nothing.matches({}), everything.matches({})) == (False, True)
    assert (nothing.is_empty, everything.is_empty) == (False, True)
    assert (str(nothing), repr(nothing), repr(everything)) == ("", "NOTHING", "Selector.parse('')")


WEB = LabelSelector(
    match_labels={"tier": "front", "app": "web"},
    match_expressions=(LabelSelectorRequirement(key="env", operator="NotIn", values=("b", "a")),),
)


def test_the_json_form_becomes_a_selector():
    assert str(Selector.from_label_selector(WEB)) == "app=web,env notin (a,b),tier=front"
    assert go_string(WEB) == (
        "&LabelSelector{MatchLabels:map[string]string{app: web,tier: front,},MatchExpressions:"
        "[]LabelSelectorRequirement{LabelSelectorRequirement{Key:env,Operator:NotIn,Values:[b a],},},}"
    )
    assert go_string(None) == "nil"


def test_an_unknown_operator_is_refused():
    wrong = LabelSelector(
        match_expressions=(LabelSelectorRequirement(key="a", operator="Gt", values=("1",)),)
    )
    with pytest.raises(SelectorError, match='"Gt" is not a valid label selector operator'):
        Selector.from_label_selector(wrong)


def test_the_json_form_survives_the_wire():
    assert wire.decode(wire.encode(WEB), LabelSelector) == WEB
    assert wire.decode('{"matchLabels":null}', LabelSelector) == LabelSelector()


def test_a_plain_label_map_selects_what_has_all_of_it():
    assert str(Selector.from_labels({"b": "2", "a": "1"})) == "a=1,b=2"


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        ("app", None),
        ("example.com/app", None),
        ("Example.com/app", "prefix part a lowercase RFC 1123 subdomain"),
        ("/app", "prefix part must be non-empty"),
        ("example.com/", "name part must be non-empty"),
        ("a/b/c", "a valid label key must consist"),
        ("a" * 64, "name part must be no more than 63 bytes"),
        ("a" * 254 + "/b", "prefix part must be no more than 253 bytes"),
        ("app\n", "name part must consist"),
    ],
)
def test_label_keys(key, problem):
    problems = label_key_problems(key)
    assert problems == [] if problem is None else problems[0].startswith(problem)


@pytest.mark.parametrize(
    ("value", "count"), [("", 0), ("a-b_c.d", 0), ("-a", 1), ("a\n", 1), ("\u00e9" * 32, 2)]
)
def test_label_values(value, count):
    assert len(label_value_problems(value)) == count


names = st.sampled_from(["app", "tier", "in", "notin", "example.com/x", "size"])
values = st.sampled_from(["", "a", "b", "5", "10", "in"])
requirements = st.one_of(
    st.builds(
        lambda key, operator, value: f"{key}{operator}{value}",
        names,
        st.sampled_from(["=", "==", "!="]),
        values,
    ),
    st.builds(lambda key, bound: f"{key}>{bound}", names, st.sampled_from(["5", "010"])),
    st.builds(
        lambda key, operator, found: f"{key} {operator} ({','.join(found)})",
        names,
        st.sampled_from(["in", "notin"]),
        st.lists(values, min_size=1, max_size=3),
    ),
    st.builds(lambda mark, key: mark + key, st.sampled_from(["", "!"]), names),
)
selectors = st.lists(requirements, max_size=4).map(lambda parts: Selector.parse(",".join(parts)))
label_sets = st.dictionaries(names, values, max_size=4)


@given(selectors, label_sets)
@settings(max_examples=150)
def test_canonical_text_means_the_same_selector(selector, labels):
    again = Selector.parse(str(selector))
    assert again == selector
    assert hash(again) == hash(selector)
    assert (
        again.matches(labels)
        == selector.matches(labels)
        == all(r.matches(labels) for r in selector.requirements)
    )


@given(st.text("ab=!(),<> in\n/-", max_size=30) | st.text(max_size=30))
@example("a" + " " * 100_000)  # once cost quadratic time in the tokens
@example("\ud800/\ud800=\ud800")
@example("a=\ud800")
@example("a." * 50_000 + "/b")
@example("a in (" + "," * 100_000)
@settings(max_examples=200)
def test_garbage_is_read_or_refused_and_nothing_else(text):
    try:
        selector = Selector.parse(text)
    except SelectorError:
        return
    assert Selector.parse(str(selector)) == selector


@pytest.mark.parametrize(
    ("labels", "expressions", "want"),
    [(MAX_REQUIREMENTS, 0, 0), (0, MAX_REQUIREMENTS, 0), (MAX_REQUIREMENTS, 1, 1), (1, MAX_REQUIREMENTS, 1)],
    ids=["labels", "expressions", "one expression too many", "one label too many"],
)
def test_a_selector_has_a_bounded_number_of_requirements(labels, expressions, want):
    selector = LabelSelector(
        match_labels={f"k{place}": "v" for place in range(labels)},
        match_expressions=tuple(
            LabelSelectorRequirement(key=f"e{place}", operator="Exists") for place in range(expressions)
        ),
    )
    assert len(list(selector_problems(selector))) == want


@pytest.mark.parametrize("order", [1, -1], ids=["odd last", "odd first"])
def test_every_wrong_part_of_a_selector_is_named(order):
    labels = dict([("good", "x"), ("a b", "x")][::order])
    expressions = tuple(
        LabelSelectorRequirement(key="k", operator=operator) for operator in ["Exists", "Near"][::order]
    )
    found = dict(selector_problems(LabelSelector(match_labels=labels, match_expressions=expressions)))
    assert list(found) == ["matchLabels[a b]", f"matchExpressions[{(1, 0)[order == -1]}]"]


@pytest.mark.parametrize("text", ["-a", "-a=b", "!-a", "-a in (b)", "ok,-a", "-a,ok"])
def test_a_wrong_key_in_a_text_is_named_without_a_field(text):
    with pytest.raises(SelectorError, match='requirement: <nil>: Invalid value: "-a": '):
        Selector.parse(text)
