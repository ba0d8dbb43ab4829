"""Make and keep environments that hold a released package, such as an old jaxlib, for what is to run inside of it.

``environments.py jaxlib==0.4.31 jaxlib==0.8.3`` prints the Pythons of such environments, made now where there is none.
"""

from __future__ import annotations

import argparse
import sys

from vhlo_tools import VhloToolsError
from vhlo_tools.releases import environment


def main() -> int:
    """Print the Pythons of environments."""
    parser = argparse.ArgumentParser(description="make environments that hold a release, and print their Pythons")
    parser.add_argument("requirement", nargs="+", help="a release, such as jaxlib==0.4.31")
    try:
        for requirement in parser.parse_args().requirement:
            print(environment(requirement, say=lambda line: print(line, file=sys.stderr)), flush=True)
    except VhloToolsError as error:
        print(f"environments: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
