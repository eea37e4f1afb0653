"""The settings of a process, and how they are published.

Every setting is declared once, with its flag, help, default, and the reason for the default. `flags` declares,
`settings` holds the groups (`horizontal`, `process`, `recommender`, `history`, `updater`, `admission`), `bounds`
rejects values out of range. `compat` and `upstream_flags` translate upstream's flags. `published` and `publisher` put
the settings on a Lease, where `explain`, `top` and the dashboard read them. Parsing the command line belongs in `cli`.
"""
