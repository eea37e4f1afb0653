"""`trimtab plugin`: list the installed plug-ins, check one, and start a new one.

`command` has the three commands, `skeleton` the files of a new plug-in.
"""
