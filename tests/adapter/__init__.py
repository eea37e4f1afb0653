"""The adapter from outside: the running server over loopback."""
