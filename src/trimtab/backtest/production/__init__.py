"""What a simulation needs of production. Nothing else in `backtest` uses the inside of a side.

`horizontal` plays the syncs of an HPA. `vertical` plays recommender, updater and webhook; it alone needs numpy.

What belongs here: calls of production code, in the order of its programs. What does not: any rule, and the workload.
"""
