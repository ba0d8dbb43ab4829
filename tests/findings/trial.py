"""Run reproducers in the release of this environment, each in a process of its own with limits, and say how it ended.

Runs inside a released package, and so imports nothing of this project. Standard input is JSON: ``session``, the
source of ``session.py``, and ``trials``, each with an ``id``, its ``code``, what it is ``given`` as bytes in
hexadecimal, and the limits ``seconds`` and ``memory``. Standard output has a line of JSON for each: ``id``, ``status``
(the exit code, or the negative number of a signal; ``null`` after a time-out), ``output`` and ``errors``. The bindings
are loaded once, and processes are forked before anything is used of them.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

import contextlib
import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback

#: The stack of a main thread, so that what overflows it does so on every machine.
STACK = 8 << 20


def limit(trial):
    """Set the limits of this process."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (trial["memory"], trial["memory"]))
    processor = int(trial["seconds"]) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (4 * processor, 4 * processor))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_STACK, (STACK, resource.getrlimit(resource.RLIMIT_STACK)[1]))


def play(trial, names):
    """Run the code of a trial in this process, and print what it found.

    Code that sets ``found`` and ``right`` found a wrong answer if these differ; any other has survived if it ends, also
    with an error.
    """
    names = {**names, "given": bytes.fromhex(trial.get("given", "")), "give": lambda data: print(data.hex())}
    try:
        exec(compile(trial["code"], trial["id"], "exec"), names)
    except Exception as error:  # what a release raises differs
        print(f"error: {type(error).__name__}: {error}", flush=True)
        traceback.print_exc()
        return
    if "right" in names:
        found, right = names["found"], names["right"]
        print("right" if found == right else f"wrong: {found!r}, and not {right!r}", flush=True)
    else:
        print("ended", flush=True)


def tried(trial, names):
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as errors:
        child = os.fork()
        if not child:
            os.setsid()
            os.dup2(said.fileno(), 1)
            os.dup2(errors.fileno(), 2)
            limit(trial)
            play(trial, names)
            # As a process ends: what is freed now may crash.
            names.clear()
            sys.stdout.flush()
            sys.exit(0)
        status = waited(child, trial["seconds"])
        output = []
        for file in (said, errors):
            file.seek(0)
            output.append(file.read(1 << 16).decode(errors="replace"))
    return {"id": trial["id"], "status": status, "output": output[0], "errors": output[1]}


def waited(child, seconds):
    """Return the status of a child, which is killed after a time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def main():
    """Run all trials."""
    asked = json.load(sys.stdin)
    names = {"__name__": "session"}
    exec(compile(asked["session"], "session.py", "exec"), names)
    for trial in asked["trials"]:
        answer = tried(trial, names)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
