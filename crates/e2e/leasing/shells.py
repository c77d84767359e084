"""Runs commands of a stock shell, each in a process of its own, but loads the shell's modules only once.

Loading takes a second and more of a processor, and there are many commands. A command is a line on standard
input, the arguments as a JSON list; the answer is a line on standard output with what it left behind.
"""

import importlib
import json
import os
import sys
import tempfile

# What the installed programs call.
MODULES = {"blazar": "blazarclient.shell", "openstack": "openstackclient.shell"}


def run(main, program, arguments):
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        child = os.fork()
        if child == 0:
            for number, file in enumerate([open(os.devnull, "rb"), out, errors]):
                os.dup2(file.fileno(), number)
            sys.argv = [program, *arguments]
            # As the installed programs end.
            sys.exit(main(arguments))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        texts = []
        for file in (out, errors):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
        return {"status": status, "stdout": texts[0], "stderr": texts[1]}


def serve(program):
    main = importlib.import_module(MODULES[program]).main
    for line in iter(sys.stdin.readline, ""):
        print(json.dumps(run(main, program, json.loads(line))), flush=True)


serve(sys.argv[1])
