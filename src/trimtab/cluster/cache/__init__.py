"""Caches of API objects, filled by list and watch.

Reading order: `informer` (list, watch, resume), `watch` (one watch), `store` (objects, indexes and event handlers), `parts`
(what a replica watches), `shared` (some namespaces, and the informers that components share).

What does not belong here: what a component does with cached objects, and decoding, which is in `codec`.
"""
