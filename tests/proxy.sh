#!/usr/bin/env bash
# Runs the official SDKs of Anthropic and OpenAI for Python and TypeScript, unchanged, through
# `threadfold proxy` against a provider with a window that is ten times too small and with the rules of
# the providers: every turn must be answered, nothing refused, nothing illegal. Without the proxy the
# same agents must die.
#
# usage: tests/proxy.sh [TURNS [RUN...]]
# A RUN is a language and a dialect, such as py:chat or mjs:responses; without one, all six are done.
# THREADFOLD_PROGRAM names another build of the program, such as an optimised one.
# Where the checker, node or npm is missing, it says what was skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

turns=${1:-200}
runs=${*:2}
# A turn has about 240 tokens.
window=$((turns * 22))
[ "$window" -ge 2000 ] || window=2000
source tests/proxy/servers.sh
home=$PWD/target/proxy-sdk
mkdir -p "$home"
if command -v node >/dev/null && command -v npm >/dev/null; then
    [ -d "$home/node_modules/openai" ] && [ -d "$home/node_modules/@anthropic-ai/sdk" ] ||
        npm install --silent --no-audit --no-fund --prefix "$home" @anthropic-ai/sdk openai
    all="py:messages py:chat py:responses mjs:messages mjs:chat mjs:responses"
else
    echo "skipped: without node and npm the SDKs for TypeScript are not run"
    all="py:messages py:chat py:responses"
fi

agent() {
    case $1 in
        py) "$python" "$tests/agent.py" "$2" "$3" "$4" ;;
        mjs) (cd "$home" && node "$tests/agent.mjs" "$2" "$3" "$4") ;;
    esac
}

for run in ${runs:-$all}; do
    language=${run%:*} kind=${run#*:}
    folder=$(mktemp -d "$home/run.XXXXXX")
    serve "$folder" "$window" --bodies "$folder/bodies"
    if ! bytes=$(agent "$language" "$kind" "$proxy" "$turns" 2>"$folder/agent"); then
        tail -n 5 "$folder/agent" "$folder/proxy"
        exit 1
    fi
    "$python" -c '
import json, sys
seen, bytes, turns, window = json.loads(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
assert seen["answered"] == 2 * turns and not seen["refused"] and not seen["illegal"], seen
assert turns < 100 or bytes / 4 > 10 * window, (bytes, window)
print("{:<4} {:<10} {} turns, {} answers, 0 refused, 0 illegal; thread about {:,} tokens, largest request {:,} of {:,}"
      .format(sys.argv[5], sys.argv[6], turns, seen["answered"], bytes // 4, seen["largest"], window))
' "$(seen)" "$bytes" "$turns" "$window" "$language" "$kind"
    judge_bodies "$folder/bodies"
    if agent "$language" "$kind" "$upstream" "$turns" >/dev/null 2>"$folder/alone"; then
        echo "without the proxy the agent went through: the window is not small"
        exit 1
    fi
    refused_for_length "$folder/alone"
    stop
    rm -rf "$folder"
done
