"""The real programs: which release is chosen, where the programs are, which tests are run."""
