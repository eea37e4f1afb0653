"""The values of an installation: what there is (`table`), of which type, and how a user sets them.

`set_syntax` parses `--set`, `assignments` joins files and assignments, `schema` checks the result.
"""
