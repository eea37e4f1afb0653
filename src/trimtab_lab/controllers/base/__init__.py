"""The base of the lab's controllers and nodes.

Reading order: `kinds` (the objects), `write_through_cache` (a cache that shows our own writes), `caches` (one per
resource), `work_queue` (the loop of a controller), `pods` (readiness, deletion order, adoption, templates),
`status_writer` (statuses and conditions), `placement` (which nodes a pod may run on).
"""
