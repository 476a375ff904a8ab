//! `run`: an agent with a proxy of its own.
//!
//! The proxy listens on a free port of loopback; [`launch`] decides how the agent finds it. The
//! screen belongs to the agent, so the proxy writes its lines to a file. When the agent has ended,
//! one line says what was done.

use std::{env, ffi::OsString, fs, io, path::Path, process::Command, sync::Arc};

use crate::{
    args::RunArguments,
    error::{Ended, Failure},
    proxy::{self, Notes, Upstream, Upstreams, Vendor},
};

mod child;
mod launch;

use launch::{Launch, Vendors};

/// The exit codes of shells for a program that is missing, and for one that cannot be started.
const NOT_FOUND: u8 = 127;
const NOT_STARTED: u8 = 126;

pub(crate) fn run(arguments: RunArguments) -> Result<Ended, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(carry_out(arguments));
    runtime.shutdown_timeout(proxy::GRACE);
    ended
}

async fn carry_out(arguments: RunArguments) -> Result<Ended, Failure> {
    let RunArguments { command, agent, anthropic, openai, gemini, listen, serving } = arguments;
    let (at, agent) = match agent {
        Some(agent) => (0, Some(agent)),
        None => launch::recognised(&command).map_or((0, None), |(at, agent)| (at, Some(agent))),
    };
    let named = Vendors {
        anthropic: anthropic.is_some(),
        openai: openai.is_some(),
        gemini: gemini.is_some(),
    };
    let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let upstreams = Upstreams {
        anthropic: upstream(
            anthropic,
            (Vendor::Anthropic, &launch::ANTHROPIC, "https://api.anthropic.com"),
            variable,
        )?,
        openai: upstream(
            openai,
            (Vendor::OpenAi, &launch::OPENAI, "https://api.openai.com/v1"),
            variable,
        )?,
        gemini: upstream(
            gemini,
            (Vendor::Google, &launch::GEMINI, "https://generativelanguage.googleapis.com"),
            variable,
        )?,
    };
    let Some(vendors) = launch::vendors(agent, named) else {
        return Err(launch::unknown(&command).into());
    };

    let folder = serving.folder.clone();
    proxy::open_folder(&folder)?;
    let notes = folder.join("proxy.log");
    let notes = Notes::in_file(&notes).map_err(|error| {
        let name = notes.display();
        format!("{name}: {error}; name a folder that can be written with --folder")
    })?;
    let proxy = Arc::new(proxy::open(serving, upstreams.clone(), notes).await?);
    let (listener, address) = proxy::bind(listen).await?;
    let Launch { variables, arguments, extension } =
        launch::launch(agent, vendors, (address, &upstreams), variable)?;
    let extension = extension.map(|text| Extension::write(&folder, address.port(), &text));
    let extension = extension.transpose()?;

    let mut words = command.into_iter();
    let before: Vec<OsString> = words.by_ref().take(at + 1).collect();
    let Some((program, wrapped)) = before.split_first() else {
        return Err("name the program of the agent".into());
    };
    let mut started = Command::new(program);
    started.args(wrapped).args(arguments);
    started.args(extension.iter().flat_map(Extension::arguments)).args(words).envs(variables);
    let server = tokio::spawn(Arc::clone(&proxy).serve(listener));
    let ending = child::run(started).await;
    server.abort();
    proxy.store_soon().await;
    drop(extension);
    let ending = match ending {
        Ok(ending) => ending,
        Err(error) => return Ok(not_started(&program.to_string_lossy(), &error)),
    };
    if let Some(signal) = ending.signal() {
        eprintln!("threadfold: the agent was ended by signal {signal}");
    }
    let done = proxy.counts().words();
    let done = done.as_deref().unwrap_or(
        "no request came through; the agent may use another address, see `threadfold help run`",
    );
    eprintln!("threadfold: {done}; {}", folder.display());
    Ok(Ended::With(ending.code()))
}

/// The server of an API: the one of the option, or the one that the agent would have used, or else
/// the vendor's.
///
/// # Errors
///
/// A message that names the option or the variable whose address is none.
fn upstream(
    named: Option<Option<String>>,
    (vendor, variables, default): (Vendor, &[&'static str], &str),
    variable: impl Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let own = || variables.iter().find_map(|name| Some((*name, variable(name)?)));
    let named = named.flatten().map(|url| (vendor.option(), url));
    let Some((source, url)) = named.or_else(own) else { return Ok(default.to_owned()) };
    Upstream::new(&url, vendor).map_err(|error| format!("{source}: {error}"))?;
    Ok(url)
}

fn not_started(program: &str, error: &io::Error) -> Ended {
    let program = threadfold_terminal::first_line(program, 80);
    if error.kind() == io::ErrorKind::NotFound {
        eprintln!("threadfold: {program}: there is no such program in PATH; nothing was run");
        return Ended::With(NOT_FOUND);
    }
    eprintln!("threadfold: {program}: {error}; nothing was run");
    Ended::With(NOT_STARTED)
}

/// A file that the agent loads, which is deleted when this is dropped.
struct Extension(std::path::PathBuf);

impl Extension {
    fn write(folder: &Path, port: u16, text: &str) -> Result<Self, Failure> {
        let named = |error| format!("{}: {error}", folder.display());
        // The agent may read it from another folder.
        let file = folder.canonicalize().map_err(named)?.join(format!("extension-{port}.js"));
        fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(Self(file))
    }

    fn arguments(&self) -> [OsString; 2] {
        ["--extension".into(), self.0.clone().into()]
    }
}

impl Drop for Extension {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_go_where_they_went_without_the_proxy() {
        let none = |_: &str| None;
        let held = |name: &str| (name == "OPENAI_API_BASE").then(|| "http://own/v1".to_owned());
        let of = |named, held: &dyn Fn(&str) -> Option<String>| {
            upstream(named, (Vendor::OpenAi, &launch::OPENAI, "https://vendor"), held)
        };
        assert_eq!(of(None, &none).unwrap(), "https://vendor");
        assert_eq!(of(Some(None), &held).unwrap(), "http://own/v1");
        assert_eq!(of(Some(Some("http://named".to_owned())), &held).unwrap(), "http://named");
        let bad = |name: &str| (name == "OPENAI_BASE_URL").then(|| "not a url".to_owned());
        let words = of(None, &bad).unwrap_err();
        assert!(words.starts_with("OPENAI_BASE_URL: not a url: "), "{words}");
        let words = of(Some(Some("nowhere".to_owned())), &bad).unwrap_err();
        assert!(words.starts_with("--openai: nowhere: "), "{words}");
    }
}
