"""HTTP side of the dashboard.

Reading order: `app` (routes and handlers), `http` (requests and replies), `overview` (rows and their changes),
`event_stream` (live updates), `workers` (threads), `static_files`.

What does not belong here: what is shown (`sources`, `pages`) and which viewers are allowed (`auth`).
"""
