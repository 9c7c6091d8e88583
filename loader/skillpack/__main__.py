"""``python -m skillpack`` is the command ``skillpack``."""

from skillpack.cli import main

if __name__ == "__main__":
    main()
