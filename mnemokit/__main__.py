"""``python -m mnemokit`` is the command line."""

from mnemokit.cli import main

main()
