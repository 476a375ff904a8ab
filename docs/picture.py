"""Draws the picture of the README from what the example `session` prints, as an SVG.

    python3 docs/picture.py > docs/session.svg

The picture is as narrow as a phone, so that its texts can be read there, and has colours of its own, so
that it looks the same on a light and on a dark page.
"""

import re
import subprocess
import sys
import textwrap
from html import escape

COMMAND = ["cargo", "run", "--quiet", "--example", "session"]

WIDTH, MARGIN, LINE, SIZE = 440, 20, 21, 14
# Where the words begin, to the right of who says them.
INDENT = 102
# How many characters of this size fit beside the indent.
COLUMNS = 42

PAPER, INK, SOFT, FULL, FREED, TRACK = "#16181d", "#e4e7ee", "#a4acba", "#f07178", "#7ec07e", "#3a404c"


def steps(output):
    """Yields what happens: (who, words) or ("window", (percent, words))."""
    lines = [line for line in output.splitlines() if line.strip()]
    files = []
    for line in lines:
        read = re.fullmatch(r"\s+read File \d+ of \d+: I look at (\S+)\.", line)
        if read:
            files.append(read[1])
            continue
        if files:
            yield "reads", ", ".join(files)
            files = []
        size = re.fullmatch(r" {8,}[█░]+\s+(\d+) %\s+(\S+) of (\S+) tokens", line)
        said = re.fullmatch(r"(user|assistant)\s+(.+)", line)
        if size:
            yield "window", (int(size[1]), size[2])
        elif said:
            yield said[1], said[2]


class Drawing:
    """Lines from the top to the bottom."""

    def __init__(self):
        self.y, self.parts = MARGIN, []

    def text(self, words, x=INDENT, fill=INK, weight="400", anchor="start"):
        self.parts.append(
            f'<text x="{x}" y="{self.y}" fill="{fill}" font-weight="{weight}" text-anchor="{anchor}">{escape(words)}</text>'
        )

    def said(self, who, words):
        self.y += LINE
        self.text(who, MARGIN, SOFT)
        for number, line in enumerate(textwrap.wrap(words, COLUMNS)):
            self.y += LINE if number else 0
            self.text(line)
        self.y += LINE * 0.4

    def bar(self, name, percent, tokens, fill):
        self.y += LINE
        room = WIDTH - INDENT - MARGIN - 104
        self.text(name, MARGIN, SOFT)
        for width, colour in [(room, TRACK), (room * percent / 100, fill)]:
            self.parts.append(
                f'<rect x="{INDENT}" y="{self.y - 11:g}" width="{width:g}" height="11" rx="2" fill="{colour}"/>'
            )
        self.text(f"{percent} %  {tokens}", WIDTH - MARGIN, fill, anchor="end")

    def svg(self, title):
        height = self.y + MARGIN
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:g}" viewBox="0 0 {WIDTH} {height:g}" '
            f'role="img" aria-labelledby="title" style="background:{PAPER};border-radius:8px;max-width:100%;height:auto" '
            f'font-family="ui-sans-serif, system-ui, sans-serif" font-size="{SIZE}">\n'
            f'<title id="title">{escape(title)}</title>\n' + "\n".join(self.parts) + "\n</svg>\n"
        )


def main():
    done = subprocess.run(COMMAND, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(COMMAND)} failed: {done.returncode}")
    window = re.search(r"The window holds (\S+) tokens", done.stdout)
    found = list(steps(done.stdout))
    sizes = [what for who, what in found if who == "window"]
    if not window or not sizes or len(sizes) % 2:
        sys.exit("the example prints something else than this script reads")
    drawing = Drawing()
    drawing.y += 4
    drawing.text(f"A long task in a window of {window[1]} tokens", MARGIN, weight="600")
    drawing.y += LINE * 0.5
    before = True
    for who, what in found:
        if who != "window":
            drawing.said(who, what)
            continue
        percent, tokens = what
        drawing.bar("is full" if before else "compacted", percent, tokens, FULL if before else FREED)
        if not before:
            drawing.y += LINE * 0.6
        before = not before
    times = len(sizes) // 2
    title = f"An agent reads twelve files in a window that is too small for them; its thread is compacted {times} times meanwhile"
    print(drawing.svg(title), end="")


main()
