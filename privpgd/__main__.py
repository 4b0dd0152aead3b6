"""`python -m privpgd` is the command `privpgd`."""
from .cli import main

raise SystemExit(main())
