"""`python -m trimtab`: the same as the command `trimtab`."""

from trimtab.cli import main

main()
