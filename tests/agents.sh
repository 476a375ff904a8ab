#!/usr/bin/env bash
# Runs agents from the registries, unchanged and with their default limits of an answer, through
# `threadfold proxy` against a provider on loopback, whose script has them run a command in each of STEPS
# steps. The window is too small for the task. Through the proxy the task must be done, nothing may be
# illegal, no unread result may be changed where it fits, and no command may be needed twice; each request
# that is sent although it is over the trigger has a line in the proxy's log. Without the proxy the same
# agent must die.
#
# usage: tests/agents.sh [--short] [STEPS [RUN...]]
# A RUN is an agent and a dialect, such as codex:responses; without one, all are done. `--short` runs two
# agents in 15 steps. Agents are installed under target/proxy-agents; what cannot be installed is named
# and skipped. THREADFOLD_PROGRAM names another build of the program.
set -euo pipefail
cd "$(dirname "$0")/.."

steps=60
all="pi:messages pi:chat pi:responses codex:responses opencode:chat qwen:chat claude:messages
    ai-sdk:messages ai-sdk:responses langgraph:chat pydantic-ai:messages"
[ "${1:-}" != --short ] || { steps=15 all="pi:messages ai-sdk:messages"; shift; }
steps=${1:-$steps}
runs=${*:2}
runs=${runs:-$all}

if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    echo "skipped: without node and npm no agent is run"
    exit 0
fi
source tests/proxy/servers.sh
source tests/proxy/agents.sh

task="Go through the steps of the build."

# `agent NAME DIALECT SERVER FOLDER`: the agent's task, with a home and a working folder of its own.
agent() {
    local name=$1 dialect=$2 base=$3 folder=$4
    rm -rf "$folder/home" "$folder/work"
    mkdir -p "$folder/home" "$folder/work"
    export HOME=$folder/home OPENAI_API_KEY=sk-test ANTHROPIC_API_KEY=sk-test
    export XDG_CONFIG_HOME=$HOME/.config XDG_DATA_HOME=$HOME/.local/share XDG_CACHE_HOME=$HOME/.cache
    cd "$folder/work"
    case $name in
        pi)
            local api=openai-completions
            [ "$dialect" = chat ] || api=openai-responses
            [ "$dialect" = messages ] && api=anthropic-messages || base=$base/v1
            cat >"$HOME/models.json" <<END
{"providers": {"local": {"baseUrl": "$base", "api": "$api", "apiKey": "sk-test",
    "models": [{"id": "unheard-of", "contextWindow": 1000000}]}}}
END
            echo '{"compaction": {"enabled": false}, "retry": {"enabled": false}}' >"$HOME/settings.json"
            PI_CODING_AGENT_DIR=$HOME PI_OFFLINE=1 PI_TELEMETRY=0 timeout 400 \
                "$home/node_modules/.bin/pi" --print --provider local --model unheard-of --no-session "$task"
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
            CODEX_HOME=$HOME/.codex timeout 400 "$home/node_modules/.bin/codex" exec --ephemeral \
                --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox "$task"
            ;;
        opencode)
            cat >opencode.json <<END
{"autoupdate": false, "share": "disabled", "model": "local/unheard-of", "small_model": "local/unheard-of",
 "permission": {"bash": "allow"}, "compaction": {"auto": false},
 "provider": {"local": {"npm": "@ai-sdk/openai-compatible", "name": "local",
    "options": {"baseURL": "$base/v1", "apiKey": "sk-test"},
    "models": {"unheard-of": {"name": "unheard-of", "limit": {"context": 1000000, "output": 32000}}}}}}
END
            OPENCODE_DISABLE_MODELS_FETCH=1 OPENCODE_DISABLE_AUTOUPDATE=1 timeout 400 \
                "$home/node_modules/.bin/opencode" run "$task"
            ;;
        qwen)
            mkdir "$HOME/.qwen"
            echo '{"privacy": {"usageStatisticsEnabled": false}, "general": {"disableAutoUpdate": true},
                "tools": {"enableToolOutputTruncation": false, "truncateToolOutputThreshold": 0},
                "model": {"skipLoopDetection": true, "chatCompression": {"contextPercentageThreshold": 0}}}' \
                >"$HOME/.qwen/settings.json"
            OPENAI_BASE_URL=$base/v1 OPENAI_MODEL=unheard-of timeout 400 "$home/node_modules/.bin/qwen" \
                --auth-type openai --yolo --prompt "$task"
            ;;
        claude)
            ANTHROPIC_BASE_URL=$base CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_AUTO_COMPACT=1 IS_SANDBOX=1 \
                DISABLE_AUTOUPDATER=1 CLAUDE_CODE_MAX_RETRIES=0 timeout 400 "$home/node_modules/.bin/claude" \
                --print --allowedTools Bash --model claude-sonnet-4-5 "$task"
            ;;
        ai-sdk | langgraph) timeout 400 node "$tests/step_agent.mjs" "$name" "$dialect" "$base" "$home" "$task" ;;
        pydantic-ai) timeout 400 "$home/pydantic-ai/bin/python" "$tests/step_agent.py" "$base" "$task" ;;
    esac
}

failed=0
# `complain RUN FOLDER TEXT`: the run goes on with the next agent.
complain() {
    failed=1
    echo "FAILED $1: $3"
    tail -n 4 "$2/err" "$2/proxy" | cut -c1-400
}

for run in $runs; do
    name=${run%:*} dialect=${run#*:} window=$(window_of "${run%:*}")
    install "$name" || { echo "skipped: $run, which cannot be installed"; continue; }
    folder=$(mktemp -d "$home/run.XXXXXX")
    serve "$folder" "$window" --steps "$steps"
    status=0
    (agent "$name" "$dialect" "$proxy" "$folder") >"$folder/out" 2>"$folder/err" </dev/null || status=$?
    "$python" "$tests/judge.py" "$(seen)" "$steps" "$window" "$run" "$folder/proxy" ||
        complain "$run" "$folder" "exit code $status"
    stop
    # A provider that has answered nothing yet.
    serve "$folder" "$window" --steps "$steps"
    (agent "$name" "$dialect" "$upstream" "$folder") >"$folder/out" 2>"$folder/err" </dev/null || true
    alone=$(seen)
    case $alone in
        *'"refused": 0'*) complain "$run" "$folder" "without the proxy nothing was refused: the window is not small" ;;
        *'"done": true'*) complain "$run" "$folder" "without the proxy the task was done too" ;;
    esac
    stop
    rm -rf "$folder"
done
exit $failed
