"""Builds the documentation as a site of plain files: `python -m tools.site [DIRECTORY]`, or `make docs`.

Every page of docs/ becomes one HTML file; what the pages name of the repository (an example, a test) becomes a page too,
so that no link leads nowhere. The navigation is docs/README.md itself. Nothing is loaded from elsewhere and nothing
needs a server: it opens from a directory as it does from the web.
"""
