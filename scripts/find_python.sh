# Sourced by scripts/vhlo and scripts/test, which set $root and $venv: sets $python to an interpreter that can make
# environments, the one of $venv first, so that an environment is not made anew for being asked for by another Python.

find_python() {
    if [ -n "${VHLO_TOOLS_PYTHON:-}" ]; then
        set -- "$VHLO_TOOLS_PYTHON"
    else
        set -- "$venv/bin/python" python3 python3.13 python3.12 python3.11 python
    fi
    for candidate; do
        # A command that exists may still not run (a version manager's stand-in), so each is tried.
        "$candidate" -I -c '
import sys
if sys.version_info < (3, 11): sys.exit(1)
import ensurepip, venv
print(sys.executable)' 2>/dev/null && return
    done
    if [ -n "${VHLO_TOOLS_PYTHON:-}" ]; then
        echo "vhlo_tools: VHLO_TOOLS_PYTHON=$1 is not a Python 3.11 or newer with its venv and ensurepip modules" >&2
    else
        echo "vhlo_tools: no Python 3.11 or newer with its venv and ensurepip modules was found" >&2
        echo "vhlo_tools: install one (on Debian and Ubuntu: python3 and python3-venv), or name one in VHLO_TOOLS_PYTHON" >&2
    fi
    return 1
}

python=$(find_python) || exit 2
