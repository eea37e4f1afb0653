"""The vertical components: recommender, updater, admission webhook and role labels.

`wiring` builds them. `cluster_view` turns the caches (`kinds`, `targets`) into the inputs of `trimtab.decide.vertical`,
so that all components agree on which VPA controls a pod. `recommender`, `updater`, `admission` and `role_labels` are
the components, in the order in which a sample becomes a pod's size; the first, second and last are control loops. `estimation`
configures recommendations, `explain` serves `trimtab explain` and the dashboard, `metrics` holds Prometheus metrics.
Amounts of resources are compared in `trimtab.decide.vertical` only.
"""
