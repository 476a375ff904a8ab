#!/usr/bin/env python3
"""Has the types of the official SDKs judge bodies that a provider got.

usage: bodies.py CHECKER FILE
A line of FILE is a kind of body (anthropic, openai, responses) and the body. Exit code 1 if one is wrong.
"""
import importlib.util, json, sys

spec = importlib.util.spec_from_file_location("checker", sys.argv[1])
checker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(checker)
count = 0
for line in open(sys.argv[2]):
    kind, body = line.split(" ", 1)
    found = checker.check(json.loads(body), kind)[2]
    if found:
        sys.exit(f"the SDK's types refuse a body: {found[0]}")
    count += 1
assert count, "there was no body to judge"
