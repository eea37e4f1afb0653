"""The names that other packages may import from `trimtab.decide.horizontal`."""

from trimtab.decide import horizontal

PUBLIC = """
DEFAULT KUBERNETES_1_36 Compat Decision Explanation Failed Gone Memory Observation Owner PodFacts PodSamples Reading
Record Rival Sample ScaleFailure Series Settings Target Told Unread Verdict after_scale after_status decide
decide_again explain found_owner owner_key owners_to_find pod_facts verdict_of
"""


def test_the_public_names_are_these():
    assert sorted(horizontal.__all__) == sorted(PUBLIC.split())
