"""The names that other packages may import from `trimtab.decide.horizontal`."""

from trimtab.decide import horizontal

PUBLIC = """
Code ConflictingHpa Count Decision EventToRecord Explanation FetchFailure HpaSettings
Memory MetricSamples Observation Owner OwnerNotFound OwnerUnavailable PodSamples PodSnapshot
Reason Record Rules Sample ScaleFailure Series Target after_scale after_status decide explain found_owner owner_key
owners_to_find replay snapshot_pod
"""


def test_the_public_names_are_these():
    assert sorted(horizontal.__all__) == sorted(PUBLIC.split())
