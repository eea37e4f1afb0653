"""What is wrong with a label selector that somebody wrote, part by part."""

from collections.abc import Iterator

from trimtab.model.selector import LabelSelector, Selector, SelectorError

MOST_REQUIREMENTS = 100
"""More than anybody needs, and few enough that matching against every pod stays cheap (F53)."""


def selector_problems(selector: LabelSelector) -> Iterator[tuple[str, str]]:
    """Yield the parts that cannot be compiled; one by one, so that the first does not hide the next."""
    count = len(selector.match_labels) + len(selector.match_expressions)
    if count > MOST_REQUIREMENTS:
        yield f"{count} requirements", f"a selector may have at most {MOST_REQUIREMENTS}"
        return
    parts = {
        f"matchLabels[{key}]": LabelSelector(match_labels={key: value})
        for key, value in selector.match_labels.items()
    }
    for position, expression in enumerate(selector.match_expressions):
        parts[f"matchExpressions[{position}]"] = LabelSelector(match_expressions=(expression,))
    for name, part in parts.items():
        try:
            Selector.from_label_selector(part)
        except SelectorError as error:
            yield name, str(error)
