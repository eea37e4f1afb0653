"""Custom resources.

Reading order: `definitions` (validation of CustomResourceDefinitions, and the resources that they serve), `strategy` (the rules of
custom objects), `schema` (structural schemas: validation and defaults), `rules` (validation rules).
"""
