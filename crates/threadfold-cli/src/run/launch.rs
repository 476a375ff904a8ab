//! How each agent is pointed at a proxy: which variables, which arguments, which file.
//!
//! | agent | how it is pointed at the proxy | seen in |
//! |---|---|---|
//! | aider | variables of LiteLLM, `AIDER_MAX_CHAT_HISTORY_TOKENS` | 0.86.2 |
//! | Claude Code | `ANTHROPIC_BASE_URL`, `DISABLE_AUTO_COMPACT` | 2.1.197 |
//! | Codex | setting `openai_base_url`, for its own provider | 0.169.0 |
//! | Gemini CLI | `GOOGLE_GEMINI_BASE_URL` | 0.61.0 |
//! | llm | variables of the vendors' SDKs; models of Gemini read none | 0.36 |
//! | OpenCode | `OPENCODE_CONFIG_CONTENT`, for the providers of the vendors | 1.18.33 |
//! | pi | an extension, for the providers of the vendors | 0.73.1 |
//! | Qwen Code | variables of the vendors' SDKs | 0.15.10 |

use std::{ffi::OsString, net::SocketAddr, path::Path};

use clap::ValueEnum;
use serde_json::{Map, Value, json};
use threadfold_terminal::first_line;

use crate::{args::Agent, proxy::Upstreams};

/// The variables that hold the address of an API. The vendor's own SDKs read the first one, and
/// LiteLLM the second.
pub(super) const ANTHROPIC: [&str; 2] = ["ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"];
pub(super) const OPENAI: [&str; 2] = ["OPENAI_BASE_URL", "OPENAI_API_BASE"];
pub(super) const GEMINI: [&str; 2] = ["GOOGLE_GEMINI_BASE_URL", "GEMINI_API_BASE"];

/// The APIs that an agent uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Vendors {
    pub(super) anthropic: bool,
    pub(super) openai: bool,
    pub(super) gemini: bool,
}

/// What an agent is started with, beside its own arguments and variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Launch {
    pub(super) variables: Vec<(&'static str, String)>,
    /// They follow the name of the agent.
    pub(super) arguments: Vec<String>,
    /// The text of a file that the agent loads as an extension.
    pub(super) extension: Option<String>,
}

/// Returns the agent that a command starts, and the position of its name: the program, or what a
/// program such as `npx` starts.
pub(super) fn recognised(command: &[OsString]) -> Option<(usize, Agent)> {
    const STARTERS: [&str; 15] = [
        "bun", "bunx", "deno", "env", "exec", "dlx", "node", "npx", "pipx", "pnpm", "python",
        "python3", "run", "uv", "uvx",
    ];
    for (at, word) in command.iter().enumerate() {
        let word = word.to_string_lossy();
        if let Some(agent) = of_name(&word) {
            return Some((at, agent));
        }
        let name = Path::new(&*word).file_stem().map(|name| name.to_string_lossy());
        let starts = name.is_some_and(|name| STARTERS.contains(&&*name));
        let is_setting = at > 0 && (word.starts_with('-') || word.contains('='));
        if !starts && !is_setting {
            return None;
        }
    }
    None
}

/// The agent of a program or a package, whatever its folder and its version.
fn of_name(word: &str) -> Option<Agent> {
    const PACKAGES: [(&str, Agent); 7] = [
        ("@anthropic-ai/claude-code", Agent::Claude),
        ("@google/gemini-cli", Agent::Gemini),
        ("@mariozechner/pi-coding-agent", Agent::Pi),
        ("@openai/codex", Agent::Codex),
        ("@qwen-code/qwen-code", Agent::Qwen),
        ("aider-chat", Agent::Aider),
        ("opencode-ai", Agent::Opencode),
    ];
    let is_package = |name: &str| {
        word.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('@'))
    };
    if let Some((_, agent)) = PACKAGES.iter().find(|(name, _)| is_package(name)) {
        return Some(*agent);
    }
    let name = Path::new(word).file_name()?.to_str()?;
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    let name = name.strip_suffix(".exe").or(name.strip_suffix(".cmd")).unwrap_or(name);
    Agent::from_str(name, false).ok()
}

/// The APIs that are redirected: those of the agent and those that the user named. `None` if there
/// are none.
pub(super) fn vendors(agent: Option<Agent>, named: Vendors) -> Option<Vendors> {
    let all = Vendors { anthropic: true, openai: true, gemini: true };
    let own = match agent {
        Some(Agent::Claude) => Vendors { anthropic: true, ..Vendors::default() },
        Some(Agent::Codex) => Vendors { openai: true, ..Vendors::default() },
        Some(Agent::Gemini) => Vendors { gemini: true, ..Vendors::default() },
        Some(Agent::Aider | Agent::Llm | Agent::Opencode | Agent::Pi | Agent::Qwen) => all,
        None => Vendors::default(),
    };
    let vendors = Vendors {
        anthropic: own.anthropic || named.anthropic,
        openai: own.openai || named.openai,
        gemini: own.gemini || named.gemini,
    };
    (vendors != Vendors::default()).then_some(vendors)
}

/// Why an unknown program is not run.
pub(super) fn unknown(command: &[OsString]) -> String {
    let program = command.first().map(|word| word.to_string_lossy()).unwrap_or_default();
    let known: Vec<String> = Agent::value_variants()
        .iter()
        .filter_map(|agent| Some(agent.to_possible_value()?.get_name().to_owned()))
        .collect();
    format!(
        "{}: not one of {}; name the API that it uses by --anthropic, --openai or --gemini, or the \
         agent that it starts by --agent",
        first_line(&program, 80),
        known.join(", ")
    )
}

/// Decides how an agent is started. `variable` reads the variables that it would have.
///
/// # Errors
///
/// A message if a variable of the agent cannot be extended.
pub(super) fn launch(
    agent: Option<Agent>,
    vendors: Vendors,
    (address, upstreams): (SocketAddr, &Upstreams),
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Launch, String> {
    let root = format!("http://{address}");
    // Clients of OpenAI put the version into the address. A server without one keeps its own path.
    let path = upstreams.openai.split('?').next().unwrap_or_default();
    let has_version = path.trim_end_matches('/').ends_with("/v1");
    let openai = if has_version { format!("{root}/v1") } else { root.clone() };
    let mut launch = Launch::default();
    match agent {
        Some(Agent::Codex) => {
            launch.arguments = vec!["-c".to_owned(), format!("openai_base_url=\"{openai}\"")];
        }
        Some(Agent::Opencode) => {
            const NAME: &str = "OPENCODE_CONFIG_CONTENT";
            let addresses = json!({"provider": {
                "anthropic": {"options": {"baseURL": format!("{root}/v1")}},
                "openai": {"options": {"baseURL": openai}},
                "google": {"options": {"baseURL": format!("{root}/v1beta")}},
            }});
            let config = with_settings(variable(NAME), addresses)
                .ok_or_else(|| format!("{NAME} is no object of JSON, so it cannot be extended"))?;
            launch.variables.push((NAME, config));
        }
        Some(Agent::Pi) => launch.extension = Some(pi_extension(&root, &openai)),
        Some(Agent::Aider | Agent::Claude | Agent::Gemini | Agent::Llm | Agent::Qwen) | None => {}
    }
    let own_compaction = own_compaction(agent);
    launch.variables.extend(own_compaction.filter(|(name, _)| variable(name).is_none()));
    let all = [
        (vendors.anthropic, ANTHROPIC, &root),
        (vendors.openai, OPENAI, &openai),
        (vendors.gemini, GEMINI, &root),
    ];
    for (_, names, address) in all.into_iter().filter(|(is_used, ..)| *is_used) {
        launch.variables.extend(names.map(|name| (name, address.clone())));
    }
    launch.variables.extend(not_through_proxies(address, variable));
    Ok(launch)
}

/// The variable that switches the compaction of an agent off. It would compact for a window of its
/// own, although the provider gets a smaller thread.
fn own_compaction(agent: Option<Agent>) -> Option<(&'static str, String)> {
    let (name, value) = match agent? {
        Agent::Claude => ("DISABLE_AUTO_COMPACT", "1"),
        // Beyond so many tokens it has its weak model summarise the chat.
        Agent::Aider => ("AIDER_MAX_CHAT_HISTORY_TOKENS", "1000000000"),
        Agent::Codex | Agent::Gemini | Agent::Llm | Agent::Opencode | Agent::Pi | Agent::Qwen => {
            return None;
        }
    };
    Some((name, value.to_owned()))
}

/// If requests go through a proxy of the network, those to this machine must not.
fn not_through_proxies(
    address: SocketAddr,
    variable: impl Fn(&str) -> Option<String>,
) -> Vec<(&'static str, String)> {
    const PROXIES: [&str; 6] =
        ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
    if !PROXIES.iter().any(|name| variable(name).is_some()) {
        return Vec::new();
    }
    let host = address.ip().to_string();
    let with_host = |name| match variable(name) {
        Some(hosts) => format!("{hosts},{host}"),
        None => host.clone(),
    };
    ["NO_PROXY", "no_proxy"].map(|name| (name, with_host(name))).into()
}

/// Settings in JSON with more settings in them. `None` if they are no object.
fn with_settings(settings: Option<String>, more: Value) -> Option<String> {
    let settings = match settings {
        Some(settings) => serde_json::from_str::<Map<String, Value>>(&settings).ok()?,
        None => Map::new(),
    };
    let mut settings = Value::Object(settings);
    merge(&mut settings, more);
    Some(settings.to_string())
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

/// An extension of pi that changes the addresses of the vendors' providers, and no more.
fn pi_extension(root: &str, openai: &str) -> String {
    let google = format!("{root}/v1beta");
    let lines =
        [("anthropic", root), ("openai", openai), ("google", &google)].map(|(name, url)| {
            format!("  pi.registerProvider(\"{name}\", {{ baseUrl: \"{url}\" }});\n")
        });
    format!("export default function (pi) {{\n{}}}\n", lines.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn launched(agent: Option<Agent>, held: &[(&str, &str)]) -> Launch {
        let upstreams = Upstreams {
            anthropic: "https://api.anthropic.com".to_owned(),
            openai: "https://api.openai.com/v1".to_owned(),
            gemini: "https://generativelanguage.googleapis.com".to_owned(),
        };
        let named = Vendors { openai: true, ..Vendors::default() };
        let vendors = vendors(agent, named).unwrap();
        let variable = |name: &str| {
            held.iter().find(|(held, _)| *held == name).map(|(_, value)| (*value).to_owned())
        };
        launch(agent, vendors, (([127, 0, 0, 1], 1234).into(), &upstreams), variable).unwrap()
    }

    #[test]
    fn an_agent_is_recognised_by_its_program_or_by_what_starts_it() {
        let rows = [
            ("claude --print hi", Some((0, Agent::Claude))),
            ("/opt/bin/codex exec", Some((0, Agent::Codex))),
            ("gemini.cmd -p x", Some((0, Agent::Gemini))),
            ("npx -y @anthropic-ai/claude-code@2.1.197 --print", Some((2, Agent::Claude))),
            ("npx @openai/codex", Some((1, Agent::Codex))),
            ("pnpm dlx opencode-ai@latest run", Some((2, Agent::Opencode))),
            ("python3 -m aider", Some((2, Agent::Aider))),
            ("uvx aider-chat", Some((1, Agent::Aider))),
            ("env A=b qwen", Some((2, Agent::Qwen))),
            ("uvx llm hello", Some((1, Agent::Llm))),
            ("vim claude", None),
            ("--claude", None),
            ("my-agent pi", None),
            ("@openai/codexes", None),
            ("python agent.py codex", None),
        ];
        for (line, expected) in rows {
            assert_eq!(recognised(&words(line)), expected, "{line}");
        }
    }

    #[test]
    fn an_unknown_program_needs_the_name_of_an_api() {
        assert_eq!(vendors(None, Vendors::default()), None);
        let openai = Vendors { openai: true, ..Vendors::default() };
        assert_eq!(vendors(None, openai), Some(openai));
        let message = unknown(&words("my-agent x"));
        assert!(message.starts_with("my-agent: not one of aider, claude, codex"), "{message}");
    }

    #[test]
    fn only_the_variables_of_the_used_apis_are_set() {
        let openai = ["OPENAI_BASE_URL", "OPENAI_API_BASE"]
            .map(|name| (name, "http://127.0.0.1:1234/v1".to_owned()));
        assert_eq!(launched(None, &[]).variables, openai);
        let proxied = launched(None, &[("HTTPS_PROXY", "http://proxy"), ("NO_PROXY", "intern")]);
        let more = [("NO_PROXY", "intern,127.0.0.1"), ("no_proxy", "127.0.0.1")];
        let more = more.map(|(name, hosts)| (name, hosts.to_owned()));
        assert_eq!(proxied.variables, [openai, more].concat());
    }

    #[test]
    fn the_compaction_of_an_agent_is_switched_off_unless_the_user_set_it() {
        for (agent, name) in [
            (Agent::Aider, "AIDER_MAX_CHAT_HISTORY_TOKENS"),
            (Agent::Claude, "DISABLE_AUTO_COMPACT"),
        ] {
            let is_set = |held: &[(&str, &str)]| {
                launched(Some(agent), held).variables.iter().any(|(set, _)| *set == name)
            };
            assert_eq!((is_set(&[]), is_set(&[(name, "8192")])), (true, false));
        }
    }

    #[test]
    fn settings_of_the_user_stay() {
        let held = r#"{"theme": "x", "provider": {"openai": {"options": {"apiKey": "{env:K}"}}}}"#;
        let launched = launched(Some(Agent::Opencode), &[("OPENCODE_CONFIG_CONTENT", held)]);
        let config: Value = launched.variables[0].1.parse().unwrap();
        let options = json!({"apiKey": "{env:K}", "baseURL": "http://127.0.0.1:1234/v1"});
        assert_eq!(
            (&config["theme"], &config["provider"]["openai"]["options"]),
            (&json!("x"), &options)
        );
        assert_eq!(with_settings(Some("[]".to_owned()), json!({})), None);
    }

    #[test]
    fn agents_without_a_variable_get_an_argument_or_a_file() {
        let codex = launched(Some(Agent::Codex), &[]);
        assert_eq!(codex.arguments, ["-c", "openai_base_url=\"http://127.0.0.1:1234/v1\""]);
        let pi = launched(Some(Agent::Pi), &[]).extension.unwrap();
        let line = r#"pi.registerProvider("google", { baseUrl: "http://127.0.0.1:1234/v1beta" });"#;
        assert!(pi.contains(line), "{pi}");
    }
}
