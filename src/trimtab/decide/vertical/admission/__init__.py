"""What a pod gets when it is created: the JSON patch of the mutating webhook.

Reading the review and looking up VPAs is the operator's part. The sizes come from `resources`.
Reading order: `admit` (one pod in, one patch out), `startup_boost` (more CPU while a container starts),
`pod_annotations` (original resources and observed containers, stored on the pod), `patches` (the operations).
"""
