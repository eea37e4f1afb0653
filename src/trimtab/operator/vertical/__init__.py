"""The vertical loops: recommender, updater, admission webhooks, and roles from Leases.

`cluster_view` puts what the caches hold into the values that `trimtab.decide.vertical` decides on; `recommender`,
`updater` and `admission` each observe, decide and apply. All three ask the same `controlling_vpa`. Nothing in this
package compares resource amounts.
"""
