"""The testing source: values set over HTTP or from a file, for tests without Prometheus.

Reading order: `values` (file format and table), `source`, `admin` (the HTTP port that sets values).
"""
