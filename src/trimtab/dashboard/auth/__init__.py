"""Logins, permissions and protection against other sites.

Reading order: `request_checks` (Host, Origin, security headers), `sessions` (cookies), `access` (tokens and namespaces).
"""
