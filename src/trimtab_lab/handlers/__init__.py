"""The verbs: a handler gets a `ResourceRequest` and returns an `ApiResponse`.

Reading order: `context` (what all handlers share), `bodies` (decoding), `get_list` and `watch`, `create_update`, `patch`,
`delete`, the subresources `scale` and `pod_subresources`, and `views` (encoding). `metadata` and `selectors` serve several verbs.
Rules of single kinds belong in `resources`.
"""
