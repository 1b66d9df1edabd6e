#!/usr/bin/env python3
"""Writes compile_commands.json, for clangd and for tools/lint --tidy.

    tools/compile_commands.py [BAZEL_OPTION...]

Asks Bazel how it compiles each source file of the project. Generated headers must
have been built once for tools to find them: `bazel build //...`.
"""

import json
import os
import subprocess
import sys

# g++'s own, which clang does not know.
GCC_ONLY = ("-fno-canonical-system-headers", "-Wno-free-nonheap-object")


def compile_actions(options):
    command = ["bazel", "aquery"] + options
    command += ["--output=jsonproto", 'mnemonic("CppCompile", //...)']
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    return json.loads(output).get("actions", [])


def source_of(arguments):
    return arguments[arguments.index("-c") + 1]


def entry_of(arguments, root):
    return {
        "directory": root,
        "file": source_of(arguments),
        "arguments": ["clang++"] + [a for a in arguments[1:] if a not in GCC_ONLY],
    }


def main(options):
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    os.chdir(root)
    entries = {}
    for action in compile_actions(options):
        arguments = action["arguments"]
        # A file that is compiled for shared and static libraries counts once.
        if "-c" in arguments:
            entries[source_of(arguments)] = entry_of(arguments, root)
    with open("compile_commands.json", "w", encoding="utf-8") as file:
        json.dump([entries[source] for source in sorted(entries)], file, indent=1)
    print("compile_commands.json: %d files" % len(entries))


if __name__ == "__main__":
    main(sys.argv[1:])
