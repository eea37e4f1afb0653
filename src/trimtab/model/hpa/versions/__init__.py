"""Versions of the HPA API besides autoscaling/v2, and conversion between them and v2.

Read `v1` (types) first, then `conversion`. `v1_annotations` and `flat_metrics` are the forms in which v1 and v2beta1
keep what they have no fields for. `canonical` says which empty fields each version writes.
"""
