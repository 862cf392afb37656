"""`python -m silp` is the command `silp`."""

from silp.cli import main

main(prog_name="silp")
