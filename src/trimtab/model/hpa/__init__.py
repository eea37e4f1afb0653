"""HorizontalPodAutoscaler: autoscaling/v2 with the seeds' fields, and every older form people still have.

`types` is the one shape the rest of the project knows. `defaults`, `validation` and `conversion` are what an API
server does to an object before it is stored; the lab's server, `trimtab validate` and the operator share them.
"""
