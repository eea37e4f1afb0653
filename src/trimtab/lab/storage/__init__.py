"""What the lab stores: encoded objects under one version counter, in memory, as etcd and the watch cache do.

Reading order: `store` (objects), `watch_cache` (recent changes and the streams that follow them), `codec` (JSON and YAML within
limits), `identities` (uids, tokens, generated names). Rules of kinds belong in `resources`.
"""
