"""``python -m privfit`` is the command ``privfit``."""

from privfit.cli import main

if __name__ == "__main__":
    main()
