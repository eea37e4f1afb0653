"""The lab from outside: over its socket, with the clients that people use."""
