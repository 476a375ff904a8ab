#!/usr/bin/env bash
# Runs agents from the registries by `threadfold run`, with their own providers and without a word about
# the proxy in their settings, against a provider on loopback with a window that is too small for the task:
# the task must be done, nothing refused, nothing illegal, no command run again.
#
# usage: tests/run.sh [STEPS [AGENT...]]
# Agents are installed under target/proxy-agents; what cannot be installed is named and skipped.
# THREADFOLD_PROGRAM names another build of the program.
set -euo pipefail
cd "$(dirname "$0")/.."

steps=${1:-60}
agents=${*:2}
agents=${agents:-claude codex opencode pi pi-anthropic qwen gemini aider aider-anthropic aider-gemini llm llm-anthropic}
source tests/proxy/servers.sh
source tests/proxy/agents.sh
task="Go through the steps of the build."

# `agent NAME FOLDER THREADFOLD...`
agent() {
    local name=$1 folder=$2
    local run=("${@:3}")
    mkdir -p "$folder/home" "$folder/work"
    export HOME=$folder/home OPENAI_API_KEY=sk-test ANTHROPIC_API_KEY=sk-test GEMINI_API_KEY=AIza-test
    export PATH=$home/node_modules/.bin:$PATH
    export XDG_CONFIG_HOME=$HOME/.config XDG_DATA_HOME=$HOME/.local/share XDG_CACHE_HOME=$HOME/.cache
    cd "$folder/work"
    case $name in
        claude)
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 IS_SANDBOX=1 DISABLE_AUTOUPDATER=1 CLAUDE_CODE_MAX_RETRIES=0 \
                "${run[@]}" claude --print --allowedTools Bash --model claude-sonnet-4-5 "$task"
            ;;
        codex)
            CODEX_HOME=$HOME CODEX_API_KEY=sk-test "${run[@]}" codex exec --ephemeral --skip-git-repo-check \
                --model unheard-of --dangerously-bypass-approvals-and-sandbox "$task"
            ;;
        opencode)
            cat >opencode.json <<END
{"autoupdate": false, "share": "disabled", "model": "openai/unheard-of", "small_model": "openai/unheard-of",
 "permission": {"bash": "allow"}, "compaction": {"auto": false}, "provider": {"openai": {
    "models": {"unheard-of": {"name": "unheard-of", "limit": {"context": 1000000, "output": 32000}}}}}}
END
            OPENCODE_DISABLE_MODELS_FETCH=1 OPENCODE_DISABLE_AUTOUPDATE=1 "${run[@]}" opencode run "$task"
            ;;
        pi | pi-anthropic)
            local model=(--provider openai --model gpt-5)
            [ "$name" = pi ] || model=(--provider anthropic --model claude-sonnet-4-5)
            PI_CODING_AGENT_DIR=$HOME PI_OFFLINE=1 PI_TELEMETRY=0 \
                "${run[@]}" pi --print "${model[@]}" --no-session "$task"
            ;;
        gemini)
            mkdir -p "$HOME/.gemini"
            echo '{"privacy": {"usageStatisticsEnabled": false}, "general": {"enableAutoUpdate": false},
                "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}}}' \
                >"$HOME/.gemini/settings.json"
            "${run[@]}" gemini --model gemini-2.5-pro --yolo --prompt "$task"
            ;;
        aider | aider-*)
            # It has no tools. Its user runs each command in it, hands in the output, and asks for an edit.
            local model=openai/gpt-5
            case $name in
                *-anthropic) model=anthropic/claude-sonnet-4-5 ;;
                *-gemini) model=gemini/gemini-2.5-pro ;;
            esac
            for ((step = 1; step <= steps; step++)); do
                lines=60
                ((step % 7)) || lines=180
                echo "/run seq -f 'step $step: line %g of a long report about the build' $lines"
                echo "Note step $step."
            done >"$folder/typed"
            "${run[@]}" "$home/aider/bin/aider" --model "$model" --edit-format diff --no-git --yes-always \
                --no-fancy-input --no-pretty --no-check-update --analytics-disable --no-show-model-warnings \
                <"$folder/typed"
            ;;
        llm | llm-anthropic)
            local model=gpt-4.1
            [ "$name" = llm ] || model=anthropic/claude-sonnet-4-0
            cat >functions.py <<'END'
import subprocess


def bash(command: str) -> str:
    """Runs a command."""
    return subprocess.run(command, shell=True, capture_output=True, text=True).stdout
END
            LLM_USER_PATH=$HOME "${run[@]}" "$home/llm/bin/llm" --model "$model" --functions functions.py \
                --chain-limit 0 "$task"
            ;;
        qwen)
            mkdir -p "$HOME/.qwen"
            echo '{"privacy": {"usageStatisticsEnabled": false}, "general": {"disableAutoUpdate": true},
                "tools": {"enableToolOutputTruncation": false, "truncateToolOutputThreshold": 0},
                "model": {"skipLoopDetection": true, "chatCompression": {"contextPercentageThreshold": 0}}}' \
                >"$HOME/.qwen/settings.json"
            OPENAI_MODEL=unheard-of "${run[@]}" qwen --auth-type openai --yolo --prompt "$task"
            ;;
    esac
}

failed=0
for name in $agents; do
    program=${name%%-*}
    install "$program" || { echo "skipped: $name, which cannot be installed"; continue; }
    folder=$(mktemp -d "$home/run.XXXXXX") window=$(window_of "$program") status=0
    : >"$folder/upstream"
    options=(--steps "$steps")
    [ "$program" != aider ] || options+=(--typed)
    "$provider" "$window" "${options[@]}" >"$folder/upstream" &
    started+=($!)
    wait_for "$folder/upstream" '[0-9]'
    upstream=http://127.0.0.1:$(cat "$folder/upstream")
    run=(timeout --foreground 400 "$threadfold" run --window "$window" --folder "$folder/state"
        "--anthropic=$upstream" "--openai=$upstream/v1" "--gemini=$upstream" --)
    (agent "$name" "$folder" "${run[@]}") >"$folder/out" 2>"$folder/err" </dev/null || status=$?
    sed 's/^[^ ]* /threadfold: /' "$folder/state/proxy.log" >"$folder/proxy"
    "$python" "$tests/judge.py" "$(seen)" "$steps" "$window" "run $name" "$folder/proxy" && [ "$status" = 0 ] || {
        failed=1
        echo "FAILED $name: exit code $status"
        tail -n 4 "$folder/err"
    }
    grep '^threadfold: ' "$folder/err" | sed "s|; $folder.*||" || true
    stop
    rm -rf "$folder"
done
exit $failed
