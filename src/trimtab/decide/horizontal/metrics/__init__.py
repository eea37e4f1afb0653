"""The replica calculator: how many replicas each metric asks for, and all of them together.

Read `calculator`, then the kinds of metrics: `pod_metrics` (with `pod_groups` and `utilization`), and `object` and `external`
(with `totals`). `proposal` holds the results, `tolerance` the band without change, `on_loss` the loss policies. A metric that
cannot be used gives a `Failure`, which is a value. Conditions and events about metrics are in `status`.
"""
