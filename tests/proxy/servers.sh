# For tests/proxy.sh, tests/agents.sh and tests/real-model.sh, which run in the root of the repository:
# the program, a provider and a proxy on loopback. It is sourced.

# The SDKs' own types judge too, where a folder of transcripts has the program that asks them beside it.
checker=
if [ -f "${THREADFOLD_TRANSCRIPTS:-/nowhere}/../tools/validate_wire.py" ]; then
    checker=$THREADFOLD_TRANSCRIPTS/../tools/validate_wire.py
fi
command -v python3 >/dev/null || { echo "skipped: without Python there are no agents and no judge"; exit 0; }
environment=target/wire-check
[ -x "$environment/bin/python" ] || python3 -m venv "$environment"
python=$PWD/$environment/bin/python
"$python" -c 'import anthropic, openai, jsonschema' 2>/dev/null ||
    "$environment/bin/pip" install --quiet --disable-pip-version-check anthropic openai jsonschema zstandard
[ -n "${THREADFOLD_PROGRAM:-}" ] || cargo build --quiet -p threadfold-cli
[ -n "${THREADFOLD_PROVIDER:-}" ] || cargo build --quiet -p threadfold-testing --example provider
provider=${THREADFOLD_PROVIDER:-${CARGO_TARGET_DIR:-$PWD/target}/debug/examples/provider}
threadfold=${THREADFOLD_PROGRAM:-${CARGO_TARGET_DIR:-$PWD/target}/debug/threadfold}
tests=$PWD/tests/proxy

# `wait_for FILE PATTERN`: a server has written what it listens on. It is the last that was started.
wait_for() {
    for _ in $(seq 600); do
        grep -q "$2" "$1" && return
        kill -0 "${started[-1]}" 2>/dev/null || break
        sleep 0.1
    done
    echo "no server listens: $1"
    cat "$1"
    return 1
}

# `refused_for_length FILE`: the output of an agent that died says that its request was too long.
refused_for_length() {
    grep -q -e 'too long' -e 'maximum context length' -e 'out of room' -e 'exceed context limit' -e 'context window' "$1" && return
    echo "without the proxy the agent died of something else:"
    tail -n 20 "$1"
    return 1
}

started=()
stop() { for process in "${started[@]}"; do kill "$process" 2>/dev/null || true; done; started=(); }
trap stop EXIT

# `serve FOLDER WINDOW [OPTION...]`: with options of the provider; sets `upstream` and `proxy` to their addresses.
serve() {
    # Here, not in the process: what an earlier server wrote must be gone before anybody waits.
    : >"$1/upstream"
    "$provider" "$2" "${@:3}" >"$1/upstream" &
    started+=($!)
    wait_for "$1/upstream" '[0-9]'
    upstream=http://127.0.0.1:$(cat "$1/upstream")
    serve_proxy "$1" "$2"
}

# `serve_proxy FOLDER WINDOW`: a proxy in front of `upstream`.
serve_proxy() {
    : >"$1/proxy"
    "$threadfold" proxy --listen 127.0.0.1:0 --folder "$1/state" --window "$2" \
        --anthropic "$upstream" --openai "$upstream" 2>"$1/proxy" &
    started+=($!)
    wait_for "$1/proxy" 'listening on'
    proxy=$(sed -n 's/.*listening on \(http[^,]*\),.*/\1/p' "$1/proxy")
}

# `judge_bodies FILE`: the types of the SDKs find nothing wrong in the bodies of a file.
judge_bodies() { [ -z "$checker" ] || "$python" "$tests/bodies.py" "$checker" "$1"; }

# What the provider saw, as JSON.
seen() { "$python" -c "import urllib.request; print(urllib.request.urlopen('$upstream/seen').read().decode())"; }
