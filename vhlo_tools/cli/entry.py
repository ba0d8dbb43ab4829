"""Where ``vhlo`` begins: commands of upstream's programs start without what the others need."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> int:
    """Run the command line and return its exit code."""
    command, arguments = sys.argv[1:2], sys.argv[2:]
    if command in (["opt"], ["translate"]):
        from vhlo_tools.cli.upstream import main as run_program

        return run_program(f"vhlo {command[0]}", arguments)
    from vhlo_tools.cli.main import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
