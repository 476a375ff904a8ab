#!/usr/bin/env bash
# Runs the official SDKs of Anthropic and OpenAI for Python and TypeScript, unchanged, through
# `threadfold proxy` against a provider with a window that is ten times too small and with the rules of
# the providers: every turn must be answered, nothing refused, nothing illegal. Without the proxy the
# same agents must die.
#
# usage: tests/proxy.sh [TURNS]
# THREADFOLD_PROGRAM names another build of the program, such as an optimised one.
# Where the checker, node or npm is missing, it says what was skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

turns=${1:-200}
# A turn has about 240 tokens.
window=$((turns * 22))
[ "$window" -ge 2000 ] || window=2000
transcripts=${THREADFOLD_TRANSCRIPTS:-../shared/transcripts}
checker=$transcripts/../tools/validate_wire.py
if [ ! -f "$checker" ]; then
    echo "skipped: no checker beside $transcripts"
    exit 0
fi
environment=target/wire-check
[ -x "$environment/bin/python" ] || python3 -m venv "$environment"
python=$PWD/$environment/bin/python
"$python" -c 'import anthropic, openai, jsonschema' 2>/dev/null ||
    "$environment/bin/pip" install --quiet --disable-pip-version-check anthropic openai jsonschema zstandard
home=$PWD/target/proxy-sdk
mkdir -p "$home"
if command -v node >/dev/null && command -v npm >/dev/null; then
    [ -d "$home/node_modules/openai" ] && [ -d "$home/node_modules/@anthropic-ai/sdk" ] ||
        npm install --silent --no-audit --no-fund --prefix "$home" @anthropic-ai/sdk openai
    languages="py mjs"
else
    echo "skipped: without node and npm the SDKs for TypeScript are not run"
    languages=py
fi

[ -n "${THREADFOLD_PROGRAM:-}" ] || cargo build --quiet -p threadfold-cli
threadfold=${THREADFOLD_PROGRAM:-${CARGO_TARGET_DIR:-$PWD/target}/debug/threadfold}
tests=$PWD/tests/proxy

# `wait_for FILE PATTERN`: a server has written what it listens on.
wait_for() {
    for _ in $(seq 200); do
        grep -q "$2" "$1" 2>/dev/null && return
        sleep 0.1
    done
    cat "$1"
    return 1
}

started=()
stop() { for process in "${started[@]}"; do kill "$process" 2>/dev/null || true; done; started=(); }
trap stop EXIT

agent() {
    case $1 in
        py) "$python" "$tests/agent.py" "$2" "$3" "$4" ;;
        mjs) (cd "$home" && node "$tests/agent.mjs" "$2" "$3" "$4") ;;
    esac
}

for language in $languages; do
    for kind in messages chat responses; do
        folder=$(mktemp -d "$home/run.XXXXXX")
        "$python" "$tests/upstream.py" "$window" "$checker" >"$folder/upstream" &
        started+=($!)
        wait_for "$folder/upstream" '[0-9]'
        upstream=http://127.0.0.1:$(cat "$folder/upstream")
        "$threadfold" proxy --listen 127.0.0.1:0 --folder "$folder/state" --window "$window" \
            --anthropic "$upstream" --openai "$upstream" 2>"$folder/proxy" &
        started+=($!)
        wait_for "$folder/proxy" 'listening on'
        proxy=$(sed -n 's/.*listening on \(http[^,]*\),.*/\1/p' "$folder/proxy")
        if ! bytes=$(agent "$language" "$kind" "$proxy" "$turns" 2>"$folder/agent"); then
            tail -n 5 "$folder/agent" "$folder/proxy"
            exit 1
        fi
        seen=$("$python" -c "import urllib.request; print(urllib.request.urlopen('$upstream/seen').read().decode())")
        "$python" -c '
import json, sys
seen, bytes, turns, window = json.loads(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
assert seen["answered"] == 2 * turns and not seen["refused"] and not seen["illegal"], seen
assert turns < 100 or bytes / 4 > 10 * window, (bytes, window)
print("{:<4} {:<10} {} turns, {} answers, 0 refused, 0 illegal; thread about {:,} tokens, largest request {:,} of {:,}"
      .format(sys.argv[5], sys.argv[6], turns, seen["answered"], bytes // 4, seen["largest"], window))
' "$seen" "$bytes" "$turns" "$window" "$language" "$kind"
        if agent "$language" "$kind" "$upstream" "$turns" >/dev/null 2>"$folder/alone"; then
            echo "without the proxy the agent went through: the window is not small"
            exit 1
        fi
        grep -q -e 'too long' -e 'maximum context length' "$folder/alone"
        stop
        rm -rf "$folder"
    done
done
