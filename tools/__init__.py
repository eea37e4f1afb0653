"""Maintainers' programs: nothing here is shipped."""
