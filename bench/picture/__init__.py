"""The whole picture: ours and the Go peers in turn, on the same real API server, objects and metrics.

Read from the bottom up: `machine` (what the kernel counts), `api` (asking the server), `objects` and `generator`
(what is written into etcd), `standin` (the metrics), `contenders` (who is measured), `site` (all of it put up),
`horizontal` and `vertical` (one turn of one contender), `scenarios` (what is played), `results` (what is kept),
`goals`, `page` and `drawing` (what is shown). Nothing here imports the operator: it is only started, as a user would.
"""
