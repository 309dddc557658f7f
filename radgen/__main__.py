"""``python -m radgen``."""

from radgen.cli import main

if __name__ == "__main__":
    main()
