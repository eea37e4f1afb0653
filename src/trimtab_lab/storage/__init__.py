"""The lab's storage in memory: what etcd and the watch cache are to a real server.

Reading order: `store` (objects), `watch_cache` (recent changes and the streams that follow them), `codec` (JSON and YAML within
limits), `identities` (uids, tokens, generated names). Rules of kinds belong in `resources`.
"""
