# For tests/agents.sh and tests/run.sh: which agents of the registries they run, and in which window. It is
# sourced after servers.sh.

home=$PWD/target/proxy-agents
mkdir -p "$home"

# What an agent is installed from. Versions are fixed: a run shows our changes, not theirs.
packages_of() {
    case $1 in
        pi) echo @mariozechner/pi-coding-agent@0.73.1 ;;
        codex) echo @openai/codex@0.169.0 ;;
        opencode) echo opencode-ai@1.18.33 ;;
        qwen) echo @qwen-code/qwen-code@0.15.10 ;;
        claude) echo @anthropic-ai/claude-code@2.1.197 ;;
        gemini) echo @google/gemini-cli@0.61.0 ;;
        ai-sdk) echo ai@6.0.326 @ai-sdk/openai@3.0.141 @ai-sdk/anthropic@3.0.140 zod@4 ;;
        langgraph) echo @langchain/langgraph@1.7.3 @langchain/openai@1.5.8 @langchain/core@1 zod@4 ;;
        aider) echo aider-chat==0.86.2 ;;
        llm) echo llm==0.36 llm-anthropic==0.30 ;;
        pydantic-ai) echo "pydantic-ai-slim[anthropic,openai]" ;;
    esac
}

# The window of a run: less than half of what the task needs, more than prompt and tools.
window_of() {
    case $1 in
        codex) echo $((12000 + steps * 200)) ;;
        opencode) echo $((14000 + steps * 250)) ;;
        qwen) echo $((24000 + steps * 200)) ;;
        gemini) echo $((24000 + steps * 200)) ;;
        claude) echo $((34000 + steps * 200)) ;;
        aider) echo $((10000 + steps * 200)) ;;
        *) echo $((2500 + steps * 200)) ;;
    esac
}

# `install AGENT`: fails if it cannot be had. Agents in Python have an environment each, because each
# demands other versions of the same packages.
install() {
    local package missing=()
    case $1 in
        aider | llm | pydantic-ai)
            [ ! -f "$home/$1/installed" ] || return 0
            [ -x "$home/$1/bin/python" ] || python3 -m venv "$home/$1"
            timeout 300 "$home/$1/bin/pip" install --quiet --disable-pip-version-check $(packages_of "$1") &&
                touch "$home/$1/installed"
            return
            ;;
    esac
    command -v node >/dev/null && command -v npm >/dev/null || return 1
    for package in $(packages_of "$1"); do
        [ -f "$home/node_modules/${package%@*}/package.json" ] || missing+=("$package")
    done
    [ ${#missing[@]} = 0 ] || timeout 300 npm install --silent --no-audit --no-fund --prefix "$home" "${missing[@]}"
}
