"""Run the command line as a module."""

from empowerment.cli import main

main()
