"""API JSON and typed values.

`wire` decodes JSON into typed values and encodes them. `shape` names every value that does not fit a type. `canonical`
rewrites plain data as an API server returns it. The types themselves are in `core`, `hpa` and `vpa`.
"""
