"""The settings of a process, and how they are published.

A setting is declared once, in `settings` or in one of its groups (`horizontal`, `process`, `vertical`). `declare` says
which facts a declaration has. Flags, reference page, chart (`chart`) and Lease (`published`) are derived from them.
`compat` and `upstream_flags` translate upstream's flags. Parsing the command line belongs in `cli`.
"""
