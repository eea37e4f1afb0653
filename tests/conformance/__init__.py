"""Recorded upstream answers, replayed: `python -m tests.conformance [DIR]`, by default those of `tests/data/vectors`.

A vector file (`*.jsonl`, `*.jsonl.gz`) holds one case per line: a JSON object whose `function` or `kind`
says what was called, and whose `expect` is what upstream answered. The runner finds the checker that is
registered for that name, and counts the cases whose checker finds no difference.

To cover a topic, add one module to this package; every module here is imported, so nothing else changes:

    from tests.conformance.differences import differences
    from tests.conformance.registry import checks

    @checks("function", "parseQuantity")
    def parse_quantity(case):
        return differences(case["expect"], {"string": str(Quantity.parse(case["input"]))})

* `checks(field, *names, stem="")`: the checker takes cases whose `field` (`"function"` or `"kind"`) is one
  of `names`. `stem` limits it to files whose name begins so, where the same name means two things.
* A checker takes the case and returns None, or the readable difference. Raising counts as a failure.
* `differences(want, got)` compares JSON data and names each path that differs.
* A difference that is *meant* is set aside by a rule in `rulings.py`, by what it is and never by case id.
"""
