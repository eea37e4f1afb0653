"""One setting, every program: a table, and the tests that hold the programs to it."""
