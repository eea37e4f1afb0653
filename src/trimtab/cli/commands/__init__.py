"""One module per command.

What belongs here: options, wiring and output of a command. What does not: code that a second program would need.
"""
