"""The rules of built-in kinds, one strategy per kind or family of kinds."""
