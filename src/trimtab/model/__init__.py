"""Values and their rules: API objects, quantities, selectors, defaults, validation, conversion.

Nothing here performs I/O or knows what time it is. A type decodes straight from API JSON and skips the
fields we never read; a rule (default, validation, conversion) sits beside the type it belongs to.
"""
