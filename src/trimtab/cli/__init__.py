"""Commands: parse, wire together, print. Nothing is computed here."""


def main() -> None:
    """Run the command line."""
