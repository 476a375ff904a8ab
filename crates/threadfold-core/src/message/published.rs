//! The context windows that vendors published for their models. The table is `windows.txt`, which
//! describes its own format.
//!
//! Where sources differ, the table has the smaller window. It omits the names under which local
//! servers run models, because these servers run them with smaller windows, and some cut prompts
//! silently.

/// Routes on which a model's window differs from the published one: local servers, whose
/// configuration decides, and gateways with lower limits.
#[rustfmt::skip]
const OTHER_WINDOWS: [&str; 19] = [
    "cerebras", "chatgpt", "codex", "copilot", "github", "github-copilot", "github_copilot",
    "hosted_vllm", "llama.cpp", "llamacpp", "llamafile", "lm-studio", "lm_studio", "lmstudio",
    "local", "localai", "ollama", "ollama_chat", "vllm",
];

/// Prefixes of model names that end with a full stop: regions and vendors, as Bedrock writes them.
#[rustfmt::skip]
const BEFORE_A_STOP: [&str; 12] = [
    "us", "us-gov", "eu", "apac", "au", "jp", "global", "anthropic", "meta", "mistral", "openai",
    "qwen",
];

/// The words other than numbers that name a release.
const RELEASES: [&str; 7] = ["latest", "preview", "exp", "experimental", "beta", "default", "v1"];

/// Whether two names are of one model: both name the same, or one of them also names a release, a
/// route or a region, as the names in answers do.
///
/// ```
/// use threadfold_core::message::is_same_model;
///
/// assert!(is_same_model("claude-opus-5-5", "us.anthropic.claude-opus-5-5-20261001-v1:0"));
/// assert!(!is_same_model("gpt-6.2-sol", "gpt-6.2-astra"));
/// ```
#[must_use]
pub fn is_same_model(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(str::to_ascii_lowercase);
    let [one, other] = [&one, &other].map(|name| {
        let (_, model) = routed(name);
        model.split(SEPARATORS).collect::<Vec<_>>()
    });
    let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
    long.strip_prefix(short.as_slice()).is_some_and(is_release)
}

/// Returns the route to a model, and its name there.
fn routed(name: &str) -> (Vec<&str>, &str) {
    let mut route: Vec<&str> = name.split('/').collect();
    let mut model = route.pop().unwrap_or_default();
    while let Some((before, rest)) =
        model.split_once('.').filter(|(before, _)| BEFORE_A_STOP.contains(before))
    {
        route.push(before);
        model = rest;
    }
    (route, model)
}

/// Returns the published window of a model in tokens; `None` for a name that is not in the table.
pub(super) fn published(name: &str) -> Option<u64> {
    let name = name.to_ascii_lowercase();
    let (route, model) = routed(&name);
    if route.iter().any(|part| OTHER_WINDOWS.contains(part)) {
        return None;
    }
    let vendor = route.last().filter(|part| part.starts_with("meta")).map(|_| "meta/");
    let model = without_tag(model)?.replace("llama-", "llama");
    let words: Vec<&str> = vendor.into_iter().chain(model.split(SEPARATORS)).collect();
    let matches = rows().filter_map(|(row, tokens)| {
        let row: Vec<&str> = row.split(' ').collect();
        let rest = words_after(&row, &words)?;
        is_release(rest).then_some((rest.len(), tokens))
    });
    let (_, tokens) = matches.min_by_key(|(rest, _)| *rest)?;
    tokens.replace('_', "").parse().ok()
}

/// Returns the name and the window of each row, as written.
fn rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = include_str!("windows.txt").lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(" = "))
}

const SEPARATORS: [char; 5] = ['-', '.', '_', '@', ':'];

/// Returns the name without the owner of a fine-tuned model (`ft:gpt-...:owner`). `None` if a colon
/// precedes anything but digits: that is the tag of a local server (`llama3.1:8b`) or of a
/// gateway's variant (`:free`, `:200k`), which has a window of its own.
fn without_tag(model: &str) -> Option<&str> {
    if let Some(tuned) = model.strip_prefix("ft:") {
        return tuned.split(':').next();
    }
    let tag = model.split_once(':').map_or("", |(_, tag)| tag);
    tag.bytes().all(|byte| byte.is_ascii_digit()).then_some(model)
}

/// Returns the words after those of the row; `None` if the row does not match.
fn words_after<'w, 'n>(row: &[&str], words: &'w [&'n str]) -> Option<&'w [&'n str]> {
    let Some((first, row)) = row.split_first() else { return Some(words) };
    let (pattern, optional) =
        first.strip_suffix('?').map_or((*first, false), |pattern| (pattern, true));
    let matched = words.split_first().filter(|(word, _)| pattern.split('|').any(|p| p == **word));
    let rest = matched.and_then(|(_, rest)| words_after(row, rest));
    rest.or_else(|| optional.then(|| words_after(row, words)).flatten())
}

/// `true` if the words name only a release. A number of one or two digits may be a version, so it
/// counts only as part of a date or after `v1`.
fn is_release(words: &[&str]) -> bool {
    let mut dated = false;
    words.iter().all(|word| {
        let number = word.bytes().all(|byte| byte.is_ascii_digit()) && !word.is_empty();
        let fits = if number { dated || word.len() > 2 } else { RELEASES.contains(word) };
        dated |= number || matches!(*word, "preview" | "v1");
        fits
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_window_that_their_vendor_published() {
        let rows = [
            ("claude-sonnet-5-5", 1_000_000),
            ("claude-3-opus-20240229", 200_000),
            ("claude-opus-4-1@20250805", 200_000),
            ("vertex_ai/claude-mythos-preview", 1_000_000),
            ("gpt-6.2-sol", 1_050_000),
            ("gpt-6.2-astra", 1_050_000),
            ("claude-fable-5-2", 1_000_000),
            ("claude-mythos-5.2", 1_000_000),
            ("gemini-4-argon", 1_048_576),
            ("us.openai.gpt-6.1-terra", 1_050_000),
            ("gpt-5.6", 1_050_000),
            ("gpt-5.6-cyber", 400_000),
            ("gpt-5.4-2026-03-05", 1_050_000),
            ("gpt-5.4-mini", 400_000),
            ("azure/gpt-5-mini-2025-08-07", 400_000),
            ("gpt-5.1-codex-max", 400_000),
            ("gpt-5.3-codex", 400_000),
            ("gpt-5.3-codex-spark", 128_000),
            ("ft:gpt-4.1-mini-2025-04-14:acme::id", 1_047_576),
            ("gpt-4o-mini", 128_000),
            ("gpt-4-turbo-2024-04-09", 128_000),
            ("o1-pro", 200_000),
            ("o3-deep-research-2025-06-26", 200_000),
            ("gemini-2.0-flash-001", 1_048_576),
            ("gemini-2.5-flash-preview-09-2025", 1_048_576),
            ("google/gemini-2.5-pro-preview-05-06", 1_048_576),
            ("gemini-2.5-flash-lite", 1_048_576),
            ("gemini-3.1-pro-preview", 1_048_576),
            ("gemini-flash-latest", 1_000_000),
            ("mistral/mistral-large-latest", 262_144),
            ("mistral.mistral-large-2407-v1:0", 128_000),
            ("mistral-medium-3.5", 262_144),
            ("mistral-medium-3-5", 262_144),
            ("mistralai/mistral-small-2603", 256_000),
            ("magistral-medium-latest", 128_000),
            ("codestral-2508", 128_000),
            ("devstral-2512", 256_000),
            ("devstral-medium-2507", 128_000),
            ("ministral-8b-2512", 262_144),
            ("deepseek/deepseek-chat", 128_000),
            ("deepseek-reasoner", 128_000),
            ("deepseek-v4-pro", 1_000_000),
            ("qwen3-max-2026-01-23", 262_144),
            ("qwen/qwen3-coder-plus", 1_000_000),
            ("Qwen/Qwen3-Coder-480B-A35B-Instruct", 262_144),
            ("qwen-plus-latest", 131_072),
            ("qwen3.7-max", 1_000_000),
            ("meta-llama/Llama-3.3-70B-Instruct", 128_000),
            ("meta-llama/Meta-Llama-3-8B-Instruct", 8_192),
            ("us.meta.llama3-1-70b-instruct-v1:0", 128_000),
            ("meta.llama3-2-90b-instruct-v1:0", 128_000),
            ("meta_llama/Llama-4-Maverick-17B-128E-Instruct-FP8", 128_000),
            ("xai/grok-4-0709", 256_000),
            ("grok-4-1-fast-non-reasoning", 2_000_000),
            ("x-ai/grok-4.1-fast", 2_000_000),
            ("grok-4.20-0309-reasoning", 1_000_000),
            ("grok-4.7", 500_000),
            ("grok-3-mini-fast-latest", 131_072),
            ("grok-code-fast-1-0825", 256_000),
        ];
        for (name, tokens) in rows {
            assert_eq!(published(name), Some(tokens), "{name}");
        }
    }

    #[test]
    fn ambiguous_and_unknown_names_have_no_window() {
        let names = [
            // Local servers have a window of their own.
            "llama3.1:8b-instruct-q4_K_M",
            "qwen2.5-coder:7b",
            "qwen3:4b",
            "gpt-oss:20b",
            "deepseek-v3.2:cloud",
            "mistral-large:latest",
            "ollama/gpt-oss-20b",
            "hosted_vllm/meta-llama/Llama-3.3-70B-Instruct",
            "lmstudio/qwen3-max",
            // Ollama and others accept these without a tag.
            "llama3.1",
            "llama4",
            "meta-llama-3.1-8b-instruct",
            "meta/llama-3.3-70b",
            "openai/gpt-oss-20b",
            "mistralai/devstral-small-2507",
            "mistral-large",
            "mistral",
            "qwen3",
            "codestral",
            "Llama-3.3-70B-Instruct-GGUF",
            "llama-3.1-8b-instruct-q4_k_m",
            "Meta-Llama-3.1-8B-Instruct-AWQ",
            // Gateways with lower limits, and their variants.
            "github_copilot/gpt-5.6-sol",
            "chatgpt/gpt-5.5",
            "cerebras/llama-3.3-70b-instruct",
            "meta-llama/llama-3.3-70b-instruct:free",
            "anthropic.claude-3-sonnet-20240229-v1:0:28k",
            "llama-3.3-70b-versatile",
            // Names that resemble those of the table.
            "claude-opus-6",
            "claude-haiku-5",
            "claude-opus-4-9",
            "gpt-6.3-sol",
            "gpt-7",
            "gpt-5.7",
            "gpt-5.1-chat-latest",
            "gpt-4o-realtime-preview",
            "gpt-4.5-preview",
            "o5",
            "gemini-4-xenon",
            "gemini-2.5-flash-image",
            "gemini-2.5-pro-preview-tts",
            "grok-4.35",
            "grok-5",
            "deepseek-v5",
            "deepseek-r1-distill-qwen-7b",
            "mistral-large-5",
            "qwen4-max",
            "my-gpt-5-clone",
            "gpt-5-35",
            "gpt",
            "",
            "/",
            ":",
            "ft:",
        ];
        for name in names {
            assert_eq!(published(name), None, "{name}");
        }
    }

    #[test]
    fn every_row_of_the_table_can_be_looked_up() {
        let lines = include_str!("windows.txt").lines();
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#')).count();
        assert_eq!(rows().count(), lines);
        for (row, tokens) in rows() {
            let tokens: u64 = tokens.replace('_', "").parse().unwrap();
            let words = row.split(' ').filter(|word| !word.ends_with('?'));
            let first: Vec<&str> = words.filter_map(|word| word.split('|').next()).collect();
            let name = first.join("-").replace("meta/-", "meta-llama/");
            assert_eq!(published(&name), Some(tokens), "{row}: {name}");
        }
    }
}
