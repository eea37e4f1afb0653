"""What is wrong with a label selector that somebody wrote, part by part."""

from collections.abc import Iterator, Mapping

from trimtab.model.bounds import shortened
from trimtab.model.selector import LabelSelector, Selector, SelectorError

MOST_REQUIREMENTS = 100
"""More than anybody needs, and few enough that matching against every pod stays cheap (F53)."""


LONGEST_SHOWN = 128
"""Characters of a key or value that are repeated as they are."""


def selector_problems(selector: LabelSelector) -> Iterator[tuple[str, str]]:
    """Yield the parts that cannot be compiled; one by one, so that the first does not hide the next."""
    count = len(selector.match_labels) + len(selector.match_expressions)
    if count > MOST_REQUIREMENTS:
        yield f"{count} requirements", f"a selector may have at most {MOST_REQUIREMENTS}"
        return
    parts = {
        f"matchLabels[{_readable(key)}]": LabelSelector(match_labels={key: value})
        for key, value in selector.match_labels.items()
    }
    for position, expression in enumerate(selector.match_expressions):
        parts[f"matchExpressions[{position}]"] = LabelSelector(match_expressions=(expression,))
    for name, part in parts.items():
        try:
            Selector.from_label_selector(part)
        except SelectorError as error:
            yield name, _without(str(error), part.match_labels)


def _readable(key: str) -> str:
    return key if len(key) <= LONGEST_SHOWN else shortened(key)


def _without(problem: str, labels: Mapping[str, str]) -> str:
    """Shorten what is too long to be repeated in a problem that quotes it."""
    for text in (*labels, *labels.values()):
        problem = problem.replace(text, _readable(text)) if len(text) > LONGEST_SHOWN else problem
    return problem
