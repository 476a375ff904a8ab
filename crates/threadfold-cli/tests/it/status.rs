//! `threadfold status` and `watch`: what another process sees of the proxies of a folder.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::Value;
use threadfold_testing::shared::Folder;

use crate::proxy::{MESSAGES, Served, agent::Agent, options, run, upstream::Upstream, used_proxy};

const WINDOW: u64 = 4_000;

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_threadfold"));
    command.args(arguments).arg("--folder").arg(folder);
    command
}

fn printed(folder: &Path, arguments: &[&str]) -> String {
    let output = command(folder, arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Looks at a folder until this holds: a proxy writes what it did from time to time.
async fn seen(folder: &Path, holds: impl Fn(&Value) -> bool) -> Value {
    loop {
        let seen: Value = printed(folder, &["status", "--json"]).parse().unwrap();
        if holds(&seen) {
            return seen;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[test]
fn a_folder_without_a_proxy_is_empty_and_stays_as_it_is() {
    let folder = Folder::new();
    let missing = folder.join("missing");
    for folder in [&*folder, missing.as_path()] {
        let lines = printed(folder, &["status"]);
        assert!(lines.contains("none runs") && lines.contains("none; a thread"), "{lines}");
    }
    assert!(!missing.exists() && std::fs::read_dir(&*folder).unwrap().next().is_none());
}

#[test]
fn status_shows_the_proxies_of_a_folder_and_the_threads_that_they_compacted() {
    run(async {
        let folder = Folder::new();
        let (_upstream, proxy, _) = used_proxy(&folder, true).await;
        let json = seen(&folder, |seen| seen["proxies"][0]["counts"]["requests"] == 40).await;
        let thread = &json["threads"][0];
        assert_eq!(
            (json["all_threads"].as_u64(), json["threads"].as_array().unwrap().len()),
            (Some(1), 1)
        );
        assert!(thread["about"]["words"].as_str().unwrap().starts_with("Go on with part 0."));
        assert!(
            thread["times"].as_u64().unwrap() > 0
                && thread["saved"]["tokens"].as_u64().unwrap() > 0
        );
        // What the proxy saved in all is what its only thread saved.
        let counts = &json["proxies"][0]["counts"];
        let saved = (&counts["smaller"], &counts["tokens_less"]);
        assert_eq!(saved, (&thread["saved"]["requests"], &thread["saved"]["tokens"]));
        let lines = printed(&folder, &["status"]);
        for part in [&*proxy.url(), "40 requests", "Go on with part 0.", "compacted"] {
            assert!(lines.contains(part), "{part}: {lines}");
        }
        assert!(lines.lines().all(|line| line.chars().count() <= 80), "{lines}");
        let none = printed(&folder, &["status", "--threads", "0"]);
        assert!(none.contains("and 1 more thread"), "{none}");
        drop(proxy);
        let json = seen(&folder, |seen| seen["proxies"].as_array().unwrap().is_empty()).await;
        assert_eq!(json["all_threads"], 1);
    });
}

#[test]
fn watch_prints_again_what_changed() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
        let mut child =
            command(&folder, &["watch", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut next = || -> Value { lines.next().unwrap().unwrap().parse().unwrap() };
        assert_eq!(next()["proxies"].as_array().unwrap().len(), 0);
        let proxy = Served::in_folder(options(&upstream, Some(WINDOW)), &folder).await;
        Agent::new(&proxy.url(), MESSAGES, true).turn(0).await.unwrap();
        while next()["proxies"][0]["counts"]["requests"] != 2 {}
        child.kill().unwrap();
        child.wait().unwrap();
    });
}
