#!/usr/bin/env python3
"""Judges what a provider saw of an agent that went through the proxy.

usage: judge.py SEEN STEPS WINDOW RUN LOG
Prints one line with the numbers, and one for each thing that is wrong. Exit code 1 if something is.
"""
import json, sys

seen, steps, window, run, log = json.loads(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5]
lines = [line for line in open(log, errors="replace") if line.startswith("threadfold: ") and "listening" not in line]
changed = seen["unread_changed"]
print("{:<20} {} steps, {} answers, {} refused, {} unread changed, {} repeated, {} over the trigger, {} lines of log; "
      "largest request {:,} of {:,}".format(run, steps, seen["answered"], seen["refused"], len(changed),
                                            seen["repeated"], seen["over"], len(lines), seen["largest"], window))
wrong = []
if not seen["done"]:
    wrong.append(f"the task is not done: {seen['answered']} answers")
if seen["illegal"]:
    wrong.append(f"{len(seen['illegal'])} requests were illegal, such as: {seen['illegal'][0]}")
for one in changed[:3]:
    wrong.append("unread result of step {step} changed although it fits: {missing} of {of} lines are missing, "
                 "request of {request} tokens, {would_be} with the whole result".format(**one))
if seen["repeated"]:
    wrong.append(f"{seen['repeated']} commands were run again")
if seen["over"] > len(lines):
    wrong.append(f"{seen['over']} requests over 80 % of the window were sent, {len(lines)} lines in the log")
for text in wrong:
    print("  " + text)
sys.exit(bool(wrong))
