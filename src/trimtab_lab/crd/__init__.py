"""Custom resources.

Reading order: `definitions` (CustomResourceDefinitions, the resources that they serve, and the rules of custom objects), `schema`
(structural schemas: validation and defaults), `rules` (the validation rules of our own definitions).
"""
