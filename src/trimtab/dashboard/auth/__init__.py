"""Logins, permissions and protection against other sites.

Reading order: `request_checks` (Host, Origin, security headers), `rights` (what a viewer may list), `access` (tokens and
reviews), `tokens` (their expiry, and failures), `sessions` (cookies).
"""
