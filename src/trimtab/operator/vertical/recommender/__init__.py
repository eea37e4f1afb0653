"""The recommender, in the order of a step.

`controller` runs the steps. `feeder` loads VPAs and pods into the `cluster_states` of our shards, `bootstrap` their
history (`history_loader` from Prometheus, `checkpoint_store` from checkpoints), `samples` usage (`usage`) and OOM kills
(`oom_watcher`). `status_builder` and `status_writer` write recommendations, `checkpoint_writer` saves histograms,
`checkpoint_collector` deletes those without a VPA and `quality_metrics` measures recommendations. Estimation itself is in
`trimtab.decide.vertical`.
"""
