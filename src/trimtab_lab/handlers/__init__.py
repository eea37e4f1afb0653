"""The verbs: a handler gets a `ResourceRequest` and returns an `ApiResponse`.

Reading order: `context` (what all handlers share), `bodies` (what clients send), `read` and `watch`, `create_update`, `patch`,
`delete`, `subresources`, and `views` (what clients get). Rules of single kinds belong in `kinds`.
"""
