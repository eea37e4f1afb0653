"""From histograms to the status of a VPA.

Belongs here: estimates, the recommendation with its derivation, post-processing and quality metrics. What pods get of a
recommendation is decided in `resources`, `update` and `admission`.

Reading order: `estimators` (percentile, margin, confidence, floor), `recommendation` (amounts of a container and their
derivation), `quantities` (amounts as API quantities), `recommender` (all VPAs: merge, estimate, post-process, set
conditions), `minor_changes` (which statuses are not written), `quality` (recommendation against usage).
"""
