"""The command line: python -m warpwright --help."""
import sys

from . import _core


def main() -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    return _core.command_line(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
