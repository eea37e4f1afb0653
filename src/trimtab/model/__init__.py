"""Values and their rules: API objects, quantities, selectors, defaults, validation, conversion.

Nothing here performs I/O or reads a clock. A type decodes straight from API JSON and skips fields that Trimtab does not
read; its defaults, validation and conversion stand beside it. Reading order: `quantity` and `times`, `json`,
`field_errors`, `labels`, `core` (built-in kinds), `hpa`, `vpa`, `crds`, then `manifest` and `bundle`, which
`trimtab validate` uses. `metrics_api` and `usage_history` are what metrics servers return.
"""
