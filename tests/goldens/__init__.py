"""Goldens of what users see of a decision: conditions, events, log, `explain`, `top` and the dashboard's page.

They know the observation and the texts, and nothing in between, so that the inside can be rebuilt under them. Read `decision`
(the form of a row), `horizontal` and `vertical` (the tables), `cluster` and `metrics` (the lab on which rows are played),
`programs` (the real programs, the one module that knows how they are built), `play` (writes down what they show) and `files`
(compares that with `decisions/`). `python -m tests.goldens --renew` writes the files anew.
"""
