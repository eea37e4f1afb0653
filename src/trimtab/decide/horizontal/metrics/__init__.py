"""How many replicas each metric asks for, and all of them together.

Read `combine`, then `kinds` (a class per type of metric), `pods` (averages over pods) and `totals` (one number for the workload). A
metric that cannot be used gives a `Failure`, which is a value. Conditions and events about metrics are in `status`.
"""
