"""The updater: evicts and resizes pods.

`controller` runs the steps and `actuator` performs their actions. Before evictions `webhook_check` tests the admission
webhook, and `replacement` tests whether the pod would come back, made from its controller's `templates`.
`update_counts` counts the outcome. Which pods to update is decided in `trimtab.decide.vertical.update`.
"""
