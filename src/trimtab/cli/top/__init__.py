"""`trimtab top`: a line per autoscaler, with its metrics, replicas and sizes, and what holds it.

`command` has the options and prints the table, `rows` reads the autoscalers and makes their rows.
"""
