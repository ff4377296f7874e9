"""``python -m fairfront``: the command line."""

from fairfront.cli import main

if __name__ == "__main__":
    main()
