#!/usr/bin/env bash
# Runs coding agents from the registry, unchanged, through `threadfold proxy` against a provider on
# loopback, whose script has them run a command in each of STEPS steps. The window is too small for the
# task: through the proxy it must be done, with nothing refused and nothing illegal; without the proxy
# the same agent must die.
#
# usage: tests/agents.sh [--short | STEPS]
# `--short` runs one agent in one dialect, without installing the large ones.
# THREADFOLD_PROGRAM names another build of the program. What is missing is said and skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

steps=${1:-60}
runs="pi:messages pi:chat pi:responses codex:responses"
packages="@mariozechner/pi-coding-agent@0.73.1 @openai/codex@0.169.0"
if [ "$steps" = --short ]; then
    steps=20 runs=pi:messages packages=${packages%% *}
fi
if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    echo "skipped: without node and npm no agent is run"
    exit 0
fi
source tests/proxy/servers.sh
home=$PWD/target/proxy-agents
mkdir -p "$home"
for package in $packages; do
    [ -f "$home/node_modules/${package%@*}/package.json" ] ||
        npm install --silent --no-audit --no-fund --prefix "$home" "$package" ||
        { echo "skipped: $package cannot be installed"; runs=; }
done

# `agent NAME DIALECT SERVER FOLDER`: the agent's task, with a home and a working folder of its own.
agent() {
    local name=$1 dialect=$2 base=$3 folder=$4
    rm -rf "$folder/home" "$folder/work"
    mkdir -p "$folder/home" "$folder/work"
    export HOME=$folder/home OPENAI_API_KEY=sk-test
    cd "$folder/work"
    case $name in
        pi)
            local api=openai-completions
            [ "$dialect" = chat ] || api=openai-responses
            [ "$dialect" = messages ] && api=anthropic-messages || base=$base/v1
            cat >"$HOME/models.json" <<END
{"providers": {"local": {"baseUrl": "$base", "api": "$api", "apiKey": "sk-test",
    "models": [{"id": "unheard-of", "contextWindow": 1000000, "maxTokens": 2000}]}}}
END
            echo '{"compaction": {"enabled": false}, "retry": {"enabled": false}}' >"$HOME/settings.json"
            PI_CODING_AGENT_DIR=$HOME PI_OFFLINE=1 PI_TELEMETRY=0 timeout 300 \
                "$home/node_modules/.bin/pi" --print --provider local --model unheard-of --no-session \
                "Go through the steps of the build."
            ;;
        codex)
            mkdir "$HOME/.codex"
            cat >"$HOME/.codex/config.toml" <<END
model = "unheard-of"
model_provider = "local"
model_context_window = 1000000
model_auto_compact_token_limit = 1000000
[model_providers.local]
name = "local"
base_url = "$base/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
request_max_retries = 0
stream_max_retries = 0
END
            CODEX_HOME=$HOME/.codex timeout 300 "$home/node_modules/.bin/codex" exec --ephemeral \
                --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox \
                "Go through the steps of the build."
            ;;
    esac
}

for run in $runs; do
    name=${run%:*} dialect=${run#*:}
    # The prompt and the tools of pi have about 1,500 tokens, those of Codex 9,500; a step has 800.
    window=$((steps * 200))
    [ "$name" = pi ] || window=$((window + 12000))
    folder=$(mktemp -d "$home/run.XXXXXX")
    serve "$folder" "$window" "$steps"
    if ! (agent "$name" "$dialect" "$proxy" "$folder") >"$folder/out" 2>"$folder/err" </dev/null; then
        tail -n 5 "$folder/err" "$folder/proxy"
        exit 1
    fi
    grep -q "All $steps steps are done." "$folder/out" || { cat "$folder/out"; exit 1; }
    "$python" -c '
import json, sys
seen, steps, window = json.loads(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
assert seen["answered"] == steps + 1 and not seen["refused"] and not seen["illegal"], seen
print("{:<6} {:<10} {} steps, {} answers, 0 refused, 0 illegal; largest request {:,} of {:,}"
      .format(sys.argv[4], sys.argv[5], steps, seen["answered"], seen["largest"], window))
' "$(seen)" "$steps" "$window" "$name" "$dialect"
    stop
    # A provider that has answered nothing yet.
    serve "$folder" "$window" "$steps"
    if (agent "$name" "$dialect" "$upstream" "$folder") >"$folder/out" 2>"$folder/err" </dev/null; then
        echo "without the proxy $name went through: the window is not small"
        exit 1
    fi
    refused_for_length "$folder/err"
    stop
    rm -rf "$folder"
done
