"""Caches of API objects, filled by list and watch.

Reading order: `informer` (list, watch, resume), `intake` (objects into the cache), `counts` (figures), `watch` (one
watch), `refusals` (kinds that may not be listed), `list_progress`
(the pages of a list), `store` (objects and indexes), `subscriptions` (event handlers), `share` (what a replica watches),
`namespaced_informer` (some namespaces), `informers` (shared informers of a process).

What does not belong here: what a component does with cached objects, and decoding, which is in `codec`.
"""
