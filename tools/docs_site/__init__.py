"""What the documentation site has beyond mkdocs-material: `make docs` builds it from `mkdocs.yml`.

`hooks` makes the navigation from `docs/README.md` and gives linked files outside of `docs/` a page. `theme` has the colours of the
dashboard and iframe-worker 1.0.4 (npm, MIT), without which search needs a server.

What does not belong here: text. Pages are written in `docs/`, reference pages by `tools.reference`.
"""
