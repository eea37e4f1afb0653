"""Custom resources: definitions, structural schemas, defaulting, pruning, validation and rules in CEL."""
