"""The four ways to change part of an object.

`json_patch` (RFC 6902), `merge` (RFC 7386 and strategic merge patches) and `managed_fields` (server-side apply). The patch verb
itself is in `handlers.patch`.
"""
