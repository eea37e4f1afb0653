"""Trimtab beside programs of other projects, which run in pods of a real node. `make test-neighbours` runs these."""
