"""The adapter's pure parts."""
