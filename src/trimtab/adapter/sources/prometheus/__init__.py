"""The Prometheus source: rules that turn questions into PromQL."""
