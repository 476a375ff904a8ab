#!/usr/bin/env python3
"""What compactions keep: of what agents needed next, then measured by instruments that others wrote.

    tests/fidelity/run.py [--short] [--seeds N] [--strategy NAME] [--losses]

Prints the table of `threadfold hindsight` for `testdata/threads`. Then it installs two packages into
a virtual environment outside of this tree, plays their sessions to `examples/fidelity.rs`, and prints a
second table. Without the packages it says that it was skipped.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PACKAGES = ["compaction-conformance-kit==0.8.0", "conpact==0.1.0"]
SHARES = (0.1, 0.2, 0.3)
FRAMES = [(strict, direct) for strict in (False, True) for direct in (False, True)]


def main():
    options = arguments()
    hindsight()
    if not importable():
        again_in_environment()
    row("instrument", "10 %", "20 %", "30 %")
    row("---", "---", "---", "---")
    with Bridge(options.strategy) as bridge:
        survival(bridge, options)
        generated(bridge, options)
        distinct(bridge, options)
        constraints(bridge)
    with Bridge(options.strategy, quotes=True) as bridge:
        survival(bridge, options)
        generated(bridge, options)
        distinct(bridge, options)


def hindsight():
    """Prints what real-looking threads keep of what their agents needed next."""
    if os.environ.get("THREADFOLD_HINDSIGHT_PRINTED"):
        return
    threads = sorted(str(path) for path in (ROOT / "testdata/threads").glob("*/*.json"))
    built = os.environ.get("THREADFOLD_PROGRAM")
    program = [built] if built else ["cargo", "run", "--quiet", "-p", "threadfold-cli", "--"]
    run = [*program, "hindsight", *threads]
    print(subprocess.run(run, check=True, cwd=ROOT, capture_output=True, text=True).stdout, flush=True)
    # This program runs itself again where the packages are.
    os.environ["THREADFOLD_HINDSIGHT_PRINTED"] = "1"


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--short", action="store_true", help="few seeds, as in CI")
    parser.add_argument("--seeds", type=int, default=20, help="how many generated sessions")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--strategy", default="ladder")
    parser.add_argument("--losses", action="store_true", help="print what was lost")
    options = parser.parse_args()
    if options.short:
        options.seeds = 5
    return options


def importable():
    try:
        import compaction_kit  # noqa: F401
        return True
    except ImportError:
        return False


def again_in_environment():
    """Runs this program again where the packages are, or ends it if they cannot be had."""
    folder = pathlib.Path(tempfile.gettempdir()) / f"threadfold-fidelity-{os.getuid()}"
    python = folder / "bin" / "python"
    try:
        if not python.exists():
            run = [sys.executable, "-m", "venv", str(folder)]
            subprocess.run(run, check=True, capture_output=True)
        # Without dependencies: only sessions and constraints are used, no model and no data set.
        pip = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", *PACKAGES]
        subprocess.run(pip, check=True, capture_output=True, timeout=120)
    except (subprocess.SubprocessError, OSError):
        print("fidelity: skipped, because the packages could not be installed")
        sys.exit(0)
    os.execv(python, [str(python), *sys.argv])


class Bridge:
    """Drives the example, one JSON value a line.

    With `quotes`, its model answers honestly which statements the user took back, as it is told.
    """

    def __init__(self, strategy, quotes=False):
        build = ["cargo", "build", "--quiet", "--example", "fidelity"]
        subprocess.run(build, check=True, cwd=ROOT)
        target = os.environ.get("CARGO_TARGET_DIR", ROOT / "target")
        program = pathlib.Path(target) / "debug" / "examples" / "fidelity"
        self.command = [str(program), "--strategy", strategy, *["--quotes"] * quotes]
        self.quotes = quotes

    def __enter__(self):
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(self.command, stdin=pipe, stdout=pipe, text=True)
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def put(self, value):
        self.process.stdin.write(json.dumps(value) + "\n")

    def ask(self, value):
        self.put(value)
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def begin(self, turns):
        self.put({"reset": True})
        for role, text in turns:
            # A system prompt is no part of a thread, and no compaction changes it.
            if role != "system":
                self.put({"role": role, "text": text})

    def compact(self, characters):
        return self.ask({"characters": characters})


def taken_back(turns, canaries, meta=None):
    """The pairs of an earlier statement and the one that takes it back.

    An update of the kit comes just after the statement with the older value, unless the session says
    which statement it replaces.
    """
    stated = (meta or {}).get("initial_statements", {})
    said = [text for role, text in turns if role == "user"]
    for canary in canaries:
        if canary.superseded_tokens:
            yield stated.get(canary.id) or said[said.index(canary.content) - 1], canary.content


def played(bridge, built, share, rounds=1):
    """The text of a session after compactions to a share of its size, between which it goes on."""
    session, *known = built
    turns = [(turn.role, turn.text) for turn in session.transcript()]
    size = len("\n".join(f"[{role}] {text}" for role, text in turns))
    bridge.begin(turns)
    if bridge.quotes:
        for earlier, later in taken_back(turns, *known):
            bridge.put({"earlier": earlier, "later": later})
    text = bridge.compact(int(size * share))
    for number in range(rounds - 1):
        for step in range(6):
            bridge.put({"role": "user", "text": f"Go on with step {number * 6 + step}."})
            bridge.put({"role": "assistant", "text": "I did that, and looked at the next one. " * 5})
        text = bridge.compact(int(size * share))
    if len(text) > size * share:
        print(f"over the target: {len(text)} of {size * share:.0f}", file=sys.stderr)
    return text.lower()


class Tally:
    def __init__(self):
        self.all = self.kept = self.old = self.stale = 0

    def count(self, canaries, text, losses=False):
        for canary in canaries:
            kept = all(token.lower() in text for token in canary.required_tokens)
            stale = any(token.lower() in text for token in canary.superseded_tokens)
            self.all += 1
            self.kept += kept
            self.old += bool(canary.superseded_tokens)
            self.stale += stale
            if losses and not kept:
                print(f"    lost: {canary.content}")
            if losses and stale:
                print(f"    stale: {canary.superseded_tokens} of {canary.content}")

    def __str__(self):
        stale = f", stale {self.stale} of {self.old}" if self.old else ""
        return f"{100 * self.kept / max(self.all, 1):.1f} %{stale}"


def row(name, *cells):
    print(f"| {name} | " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def measured(bridge, options, name, build, seeds, rounds):
    name += ", model that quotes" * bridge.quotes
    cells = []
    for share in SHARES:
        tally = Tally()
        for seed in seeds:
            built = build(seed)
            canaries, text = built[1], played(bridge, built, share, rounds)
            if options.losses:
                print(f"  {name} {seed} {share}\n{text}")
            tally.count(canaries, text, options.losses)
        cells.append(tally)
    row(name, *cells)


def survival(bridge, options):
    from compaction_kit.corpus import build_random_session

    seeds = range(options.first, options.first + 4)
    for rounds in (1, 5):
        measured(bridge, options, f"kit, {rounds} rounds", build_random_session, seeds, rounds)


def generated(bridge, options):
    from compaction_kit.generated import build_generated_session

    seeds = range(options.first, options.first + options.seeds)
    for rounds in (1, 5):
        name = f"generated sessions, {rounds} rounds"
        measured(bridge, options, name, build_generated_session, seeds, rounds)


def distinct(bridge, options):
    from compaction_kit import semantic_corpus

    builders = {
        "in other words": semantic_corpus.build_semantic_session,
        "in other words, held out": semantic_corpus.build_semantic_heldout_session,
    }
    for name, build in builders.items():
        seeds = range(options.first, options.first + 4)
        measured(bridge, options, name, build, seeds, 1)
        cells = []
        for share in SHARES:
            pairs = held = 0
            for seed in seeds:
                built = build(seed)
                _, canaries, meta = built
                text = played(bridge, built, share)
                kept = {c.id for c in canaries if all(t.lower() in text for t in c.required_tokens)}
                pairs += len(meta["distinct_pairs"])
                held += sum(set(pair) <= kept for pair in meta["distinct_pairs"])
            cells.append(f"{held} of {pairs}")
        name += ", model that quotes" * bridge.quotes
        row(f"{name}: distinct pairs", *cells)


def constraints(bridge):
    # The package imports its data loader as a whole, so only the file of constraints is read.
    import importlib.util

    found = importlib.util.find_spec("conpact")
    path = pathlib.Path(found.submodule_search_locations[0]) / "constraints.py"
    spec = importlib.util.spec_from_file_location("constraints", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for strict, direct in FRAMES:
        held = 0
        for constraint in module.SCS:
            text = module.render_sc(constraint["sc"], strict, direct)
            wanted = constraint["sc"][1:].rstrip(".")
            held += wanted in rounds_of(bridge, text)
        name = f"constraints{', strict' * strict}{', direct' * direct}"
        total = len(module.SCS)
        row(name, f"{held} of {total} after five rounds", "", "")


def rounds_of(bridge, text):
    opening = [("user", "Tell me about the city."), ("assistant", "It is old and large. " * 20)]
    bridge.begin([*opening, ("user", f"{text}\nHow long is the river that flows through it?")])
    left = ""
    for number in range(5):
        for step in range(30):
            question = f"And what about part {number}.{step} of the long story that we talked about?"
            bridge.put({"role": "assistant", "text": f"That part, {step}, is long. " * 12})
            bridge.put({"role": "user", "text": question})
        left = bridge.compact(3_000)
    return left


if __name__ == "__main__":
    main()
