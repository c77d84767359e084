"""Runs many commands of a stock shell, each in its own process, but loads the shell's modules only once, because
loading takes more than a second of processor time. A command is a line on standard input with its arguments as a
JSON list. The answer is a line on standard output with the command's result.
"""

import importlib
import json
import os
import sys
import tempfile

# The functions that the installed programs call.
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
