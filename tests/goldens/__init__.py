"""Goldens of what users see of a decision: conditions, events, log, `explain`, `top` and the dashboard's page.

`horizontal` and `vertical` are tables: what is observed, and what happens. `play` plays a table with the real programs on
the lab in virtual time, `metrics` answers their queries, and `files` compares what they show with `decisions/`. Nothing
here knows what is between an observation and a text.
"""
