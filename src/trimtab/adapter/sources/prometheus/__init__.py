"""The Prometheus source: rules that turn metric queries into PromQL.

Reading order: `rules` (the file and its queries), `promql` (templates and matchers), `source`.
"""
