"""Which PromQL a rule sends for a question."""

from trimtab.adapter.objects import Objects
from trimtab.adapter.prometheus import promql
from trimtab.adapter.prometheus.rules import CheckedRule
from trimtab.adapter.questions import ANY, NAMESPACES, CustomQuestion, ExternalQuestion


async def custom_query(
    checked: CheckedRule, series: str, question: CustomQuestion, objects: Objects
) -> str | None:
    """Return the query, or None where no object is selected, so that there is nothing to ask."""
    names: frozenset[str] | None = None
    if not question.is_about_many:
        names = frozenset({question.name})
    elif not question.objects.is_empty:
        names = await objects.names(question.resource, question.namespace, question.objects)
    return None if names is not None and not names else _query_about(checked, series, question, names)


def external_query(checked: CheckedRule, series: str, question: ExternalQuestion) -> str:
    """Return the query for the series of an external metric."""
    rule = checked.rule
    namespace = promql.equals(rule.namespace_label, question.namespace) if rule.namespace_label else ""
    matchers = promql.join(namespace, promql.from_selector(question.series))
    return checked.query(series, matchers, ", ".join(rule.group_by))


def example_queries(checked: CheckedRule, namespace: str, series: str) -> list[tuple[str, str]]:
    """Return, for each kind of object that a rule serves, its description and the query about all in a namespace."""
    metric = checked.metric_of(series) or checked.rule.metric or series
    if checked.rule.type == "external":
        return [(f"external {metric}", external_query(checked, series, ExternalQuestion(namespace, metric)))]
    found = []
    for resource in checked.rule.resources:
        is_namespace = resource == NAMESPACES
        question = CustomQuestion("" if is_namespace else namespace, resource, ANY, metric)
        names = frozenset({namespace}) if is_namespace else None
        found.append((f"{resource}/{metric}", _query_about(checked, series, question, names)))
    return found


def _query_about(
    checked: CheckedRule, series: str, question: CustomQuestion, names: frozenset[str] | None
) -> str:
    """Return the query about the named objects; None stands for all of them."""
    label = checked.rule.resources[question.resource]
    namespace = promql.equals(checked.rule.namespace_label, question.namespace) if question.namespace else ""
    which = f'{label}!=""' if names is None else promql.one_of(label, names)
    return checked.query(series, promql.join(namespace, which, promql.from_selector(question.series)), label)
