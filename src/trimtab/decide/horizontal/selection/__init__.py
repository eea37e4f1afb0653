"""Which pods count for an HPA.

Read `selection` (the strategies), `owners` (the walk along owner references), then `selector_check` (selectors that cannot be
used, and HPAs that count the same pods). What a lookup returned is in `observation.owners`; conditions about it are in `status`.
"""
