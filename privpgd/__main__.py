"""`python -m privpgd` is the command `privpgd`."""

from .app.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
