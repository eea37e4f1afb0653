"""Decisions: frozen values in, frozen values out. `now` is an argument.

No I/O, no clock, no logging, no randomness: operator, simulator, explain and replay all call this same code,
so that what is explained is what was done.
"""
