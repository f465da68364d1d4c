# SPDX-License-Identifier: Apache-2.0
"""The command `lockstep`.  Each command is a module with add_arguments(parser) and main(args), named in COMMANDS;
only the one that is called is imported, and none imports TensorFlow."""
import argparse
import importlib
import os
import signal
import sys

from lockstep.launch.problem import Problem

# name: (module, what it does)
COMMANDS = {
    "run": ("lockstep.cli.run", "start a script on many ranks"),
    "verify": ("lockstep.cli.verify", "compare one process with many ranks"),
    "bench": ("lockstep.cli.bench", "measure collectives and training steps, beside others in the same run"),
    "read": ("lockstep.cli.read", "show what is in a data file, and which rank would read what"),
    "timeline": ("lockstep.cli.timeline", "join the ranks' traces and show where time goes"),
    "info": ("lockstep.cli.info", "what was built, what was found, which settings are in force"),
    "doctor": ("lockstep.cli.doctor", "find out what is wrong with a machine or a cluster"),
}

DESCRIPTION = "Same script, same numbers, more machines: trains an unmodified TensorFlow script on many ranks."
EXAMPLES = """examples:
  lockstep run -n 4 train.py --epochs 3
  lockstep doctor -H node1:4,node2:4
  lockstep COMMAND --help"""


def parser_of(name):
    """The parser of one command."""
    module = importlib.import_module(COMMANDS[name][0])
    parser = argparse.ArgumentParser(prog=f"lockstep {name}", description=module.__doc__,
                                     epilog=module.EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.set_defaults(main=module.main)
    module.add_arguments(parser)
    return parser


def main_parser():
    parser = argparse.ArgumentParser(prog="lockstep", usage="lockstep COMMAND [options]", description=DESCRIPTION,
                                     epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_argument_group("commands")
    for name, (_, text) in COMMANDS.items():
        commands.add_argument(name, help=text, nargs="?", metavar=name)
    return parser


def parse(words):
    """The arguments of a command; run's own are those before the script."""
    name, rest = words[0], words[1:]
    parser = parser_of(name)
    module = importlib.import_module(COMMANDS[name][0])
    split = getattr(module, "split_words", None)
    if split is None:
        return parser.parse_args(rest)
    head, tail = split(parser, rest)
    args = parser.parse_args(head)
    args.program = tail
    return args


def main(words=None):
    words = list(sys.argv[1:] if words is None else words)
    if not words or words[0] in ("-h", "--help", "help"):
        main_parser().print_help()
        return 0 if words else 2
    try:
        if words[0] == "--version":
            from lockstep.launch.mpi import own_version
            print(f"lockstep {own_version()}")
            return 0
        if words[0] not in COMMANDS:
            raise Problem(f"there is no command '{words[0]}'", f"use one of {', '.join(COMMANDS)}")
        args = parse(words)
        code = args.main(args)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # `lockstep info | head`: nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python writes what is left when it ends
        return 128 + signal.SIGPIPE
    except Problem as problem:
        print(f"lockstep{' ' + words[0] if words[0] in COMMANDS else ''}: {problem}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
