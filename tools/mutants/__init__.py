"""Measure how many planted faults the tests notice: `make mutants`.

A mutant is the source of one module with one small edit. A mutant is killed when a test fails on it. The score of a
package is the share of its mutants that are killed, without those that `equivalent.toml` declares equivalent.

Read in this order: `operators` lists the edits of one module. `catalogue` samples mutants and knows the equivalent ones.
`probes` finds out which lines a test executes, `line_map` caches that for every test file. `sessions` runs each mutant
in a fork of a pytest process. `report` prints the score. No module writes to the source tree.
"""
