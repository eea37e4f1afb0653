"""Decodes what the API server answers into typed objects.

Reading order: `objects` (one response, one page, one watch event), `lists` (a list while it arrives, in pages).

What does not belong here: requests, which the client sends, and what is kept of the objects.
"""
