"""From a recommendation to the requests and limits of one pod.

Used by recommender, updater and admission. Nothing here depends on the state of a loop or on time.
Reading order: `container_resources`, `proportional` (the ratio of limit to request), `limit_ranges`, `capping` (policy
and LimitRanges), `pod_rules` (what the API server admits), `fitting` (the nearest admitted size), `pod_resources` (all of
it for one pod), `node_fit` (whether a node could hold it).
"""
