#!/usr/bin/env python3
"""Runs the checker of bodies, whose path comes first, with a form that it does not know.

A thread may begin with an answer that begins with Anthropic's own compaction: "a later request sends
[it] back first in `messages`, in place of the messages it summarizes" (SDK anthropic 2.14,
`BetaCompactionConfigParam`).
"""

import importlib.util
import sys

sys.dont_write_bytecode = True
path = sys.argv.pop(1)
spec = importlib.util.spec_from_file_location("validate_wire", path)
checker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(checker)
rules = checker.anthropic_rules


def with_compactions(messages, partial):
    errors, warnings = rules(messages, partial)
    first = checker.blocks(messages[0]) if messages else []
    if first and first[0].get("type") == "compaction":
        errors = [e for e in errors if "first message must use" not in e]
    return errors, warnings


checker.anthropic_rules = with_compactions
checker.main()
