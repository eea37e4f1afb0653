"""Rules that decide whether an API server accepts an HPA.

`spec` checks a whole object and its behavior, `metrics` its metrics, `reference` the objects that it refers to. `limits`
holds bounds that only Trimtab's own kind has. Defaults, conversion and feature gates belong elsewhere: see
`create_update`.
"""
