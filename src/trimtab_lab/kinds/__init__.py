"""The kinds that are served, and the rules of each.

Reading order: `strategy` (the rules that a kind may have), `registry` (what is served), `builtin` (the table of built-in kinds), then
the rules: `pods` with `amounts`, `workloads`, `configuration`, `events`, `hpa`. Those of custom kinds are in `crd`.
"""
