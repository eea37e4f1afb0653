"""Builds a release: `make release VERSION=0.1.0`. docs/releasing.md describes it.

`version` sets the version and closes the changelog, `archives` writes reproducible archives, `debian` has the packages of the image's
base, and `image` puts the image together. `__main__` calls them in order.
"""
