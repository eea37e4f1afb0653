"""The four ways to change part of an object.

`json_patch` (RFC 6902), `merge` (RFC 7386), `strategic` (merge patches with Kubernetes' list rules), and `managed_fields` with
`field_sets` (server-side apply). The patch verb itself is in `handlers.patch`.
"""
