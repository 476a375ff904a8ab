#!/usr/bin/env python3
"""Fits the weights by which the fill values a name (src/strategy/fill/weights.rs), by hindsight.

    tests/fidelity/weights.py [--exe PROGRAM] [FILE...]

Each thread is cut at several places. A name from before a cut is *needed* if the agent uses it after
the cut; the weights are those of a logistic regression on what was known of the name at the cut.
Without files it reads testdata/threads and the folder in THREADFOLD_TRANSCRIPTS. Printed are the
table, and for each agent how well the weights of all *other* agents rank its names: which share of
the needed names is among the best 5, 10 and 20 %.
"""
import argparse
import collections
import json
import math
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CUTS = ["0.4", "0.5", "0.6", "0.7", "0.8", "0.9"]
NAMES = ["base", "called", "calls", "answered", "answers", "results", "typed", "last", "last own",
         "failed", "path", "number"]


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--exe", default=str(ROOT / "target/debug/threadfold"))
    options.add_argument("files", nargs="*")
    options = options.parse_args()
    folders = [ROOT / "testdata/threads", ROOT / "examples/data"]
    if "THREADFOLD_TRANSCRIPTS" in os.environ:
        folders.append(pathlib.Path(os.environ["THREADFOLD_TRANSCRIPTS"]))
    found = [path for folder in folders for path in sorted(folder.rglob("*.json"))]
    files = options.files or [str(path) for path in found if path.parent.name != "raw"]
    by_agent = collections.defaultdict(lambda: collections.defaultdict(list))
    for file in files:
        arguments = [options.exe, "hindsight", "--facts", *[word for cut in CUTS for word in ("--cut", cut)], file]
        output = subprocess.run(arguments, capture_output=True, text=True)
        for line in output.stdout.splitlines():
            row = json.loads(line)
            by_agent[pathlib.Path(file).stem][row["cut"]].append((row["features"], row["needed"]))
    rows = {agent: [row for cut in cuts.values() for row in cut] for agent, cuts in by_agent.items()}
    print(f"{sum(map(len, rows.values()))} names of {len(rows)} threads")
    for agent, cuts in by_agent.items():
        weights = fitted([row for other, rows in rows.items() if other != agent for row in rows])
        shares = [ranked(cut, weights, best) for best in (0.05, 0.1, 0.2) for cut in cuts.values()]
        means = [sum(shares[at::3][:len(cuts)]) for at in range(3)]
        means = [sum(ranked(cut, weights, best) for cut in cuts.values()) / len(cuts) for best in (0.05, 0.1, 0.2)]
        needed = sum(needed for _, needed in rows[agent])
        print(f"{agent:40.40s} {needed:4d} needed   best 5 / 10 / 20 %: " + " / ".join(f"{mean:.0%}" for mean in means))
    weights = fitted([row for rows in rows.values() for row in rows])
    for name, weight in zip(NAMES, weights):
        print(f"{name:10s} {weight:6.2f}")
    print("[" + ", ".join(f"{weight:.2f}" for weight in weights) + "]")


def ranked(rows, weights, best):
    """The share of the needed names that is among this share of the best."""
    order = sorted(rows, key=lambda row: -score(row[0], weights))
    needed = sum(needed for _, needed in rows)
    kept = sum(needed for _, needed in order[:math.ceil(len(order) * best)])
    return kept / needed if needed else 1.0


def score(features, weights):
    return sum(one * other for one, other in zip(features, weights))


def fitted(rows, rounds=25, ridge=1.0):
    """Logistic regression by Newton's method. Equal rows are counted once, with their number."""
    counts = collections.Counter((tuple(round(it, 2) for it in features), needed) for features, needed in rows)
    size = len(NAMES)
    weights = [0.0] * size
    for _ in range(rounds):
        gradient = [-ridge * it for it in weights]
        hessian = [[ridge * (row == column) for column in range(size)] for row in range(size)]
        for (features, needed), count in counts.items():
            probability = 1 / (1 + math.exp(-max(-30, min(30, score(features, weights)))))
            error, spread = count * (needed - probability), count * probability * (1 - probability)
            for row in range(size):
                if features[row]:
                    gradient[row] += error * features[row]
                    for column in range(size):
                        hessian[row][column] += spread * features[row] * features[column]
        step = solved(hessian, gradient)
        weights = [one + other for one, other in zip(weights, step)]
        if max(map(abs, step)) < 1e-4:
            break
    return weights


def solved(matrix, vector):
    """Gauss's elimination."""
    rows = [row + [value] for row, value in zip(matrix, vector)]
    size = len(rows)
    for at in range(size):
        pivot = max(range(at, size), key=lambda row: abs(rows[row][at]))
        rows[at], rows[pivot] = rows[pivot], rows[at]
        for row in range(size):
            if row != at:
                factor = rows[row][at] / rows[at][at]
                rows[row] = [one - factor * other for one, other in zip(rows[row], rows[at])]
    return [rows[at][size] / rows[at][at] for at in range(size)]


if __name__ == "__main__":
    main()
