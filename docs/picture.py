"""Draws the picture of the README: what the example `session` prints in a terminal, as an SVG.

    pip install rich
    python3 docs/picture.py > docs/session.svg

Runs the example in a pseudo-terminal, so that it has its colours, and gives its output to `rich`,
which knows how to draw one.
"""

import io
import os
import pty
import subprocess
import sys

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

COMMAND = ["cargo", "run", "--quiet", "--example", "session"]
# As wide as the longest line of the example.
WIDTH = 92

DARK = TerminalTheme(
    (22, 24, 29),
    (214, 218, 226),
    [(22, 24, 29), (240, 113, 120), (126, 192, 126), (226, 190, 110), (110, 164, 235), (198, 140, 220),
     (108, 196, 204), (214, 218, 226)],
    [(92, 99, 112), (240, 113, 120), (126, 192, 126), (226, 190, 110), (110, 164, 235), (198, 140, 220),
     (108, 196, 204), (255, 255, 255)],
)

# As rich has it, but that nothing is fetched: the fonts are those of whoever looks at it.
SVG = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
    font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
    font-size: {char_height}px;
    line-height: {line_height}px;
    font-variant-east-asian: full-width;
}}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
<rect fill="#16181d" x="1" y="1" width="{width}" height="{height}" rx="8" />
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def recorded(command):
    """What a command prints to a terminal."""
    reader, terminal = pty.openpty()
    with subprocess.Popen(command, stdout=terminal) as process:
        os.close(terminal)
        output = b""
        while True:
            try:
                piece = os.read(reader, 4096)
            except OSError:  # What Linux says at the end.
                break
            if not piece:
                break
            output += piece
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} failed: {process.returncode}")
    return output.decode().replace("\r\n", "\n").strip("\n")


def main():
    text = Text.from_ansi(recorded(COMMAND))
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(text, soft_wrap=True)
    print(console.export_svg(theme=DARK, code_format=SVG, unique_id="session"), end="")


main()
