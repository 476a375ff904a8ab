#!/usr/bin/env bash
# Opens every page that the program makes in headless Chromium, at the widths of a desk and of a hand,
# light and dark: nothing may be wider than the screen, every text must have the contrast of WCAG AA and
# a size that can be read, and every link must be reached by keyboard and show that it is.
#
# usage: tests/pages.sh [FOLDER]
# With a folder, it keeps a picture of each page there. THREADFOLD_PROGRAM names another build of the
# program, THREADFOLD_CHROMIUM another browser. Where Chromium, node or npm is missing, it says that it
# was skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

chromium=${THREADFOLD_CHROMIUM:-}
for name in chromium chromium-browser google-chrome; do
    [ -n "$chromium" ] || chromium=$(command -v "$name" || true)
done
if [ -z "$chromium" ] || ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    echo "skipped: without Chromium, node and npm no page is opened"
    exit 0
fi
home=$PWD/target/pages
mkdir -p "$home"
[ -d "$home/node_modules/playwright-core" ] ||
    npm install --silent --no-audit --no-fund --prefix "$home" playwright-core
[ -n "${THREADFOLD_PROGRAM:-}" ] || cargo build --quiet -p threadfold-cli
program=${THREADFOLD_PROGRAM:-${CARGO_TARGET_DIR:-$PWD/target}/debug/threadfold}

folder=$(mktemp -d "$home/run.XXXXXX")
trap 'rm -rf "$folder"' EXIT
# A module is looked for beside the file that imports it.
cp tests/pages/*.mjs "$home/"
node "$home/check.mjs" "$chromium" "$program" "$folder" "$PWD" "${1:-}"
