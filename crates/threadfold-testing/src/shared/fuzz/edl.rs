//! One fuzz case of edit scripts, shared by the fuzz target and by the bounded run in the tests.

#![allow(clippy::expect_used, reason = "a test stops where something is not as it must be")]

use threadfold::edl::{Limits, Script, Workspace, tool};

/// Reads bytes as a script and the files `/a`, `/b`, ... after it, each after a zero byte, runs the
/// script and checks the invariants of a run.
///
/// # Panics
///
/// If an invariant does not hold.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut parts = text.split('\0');
    let script = parts.next().unwrap_or_default();
    let mut before = Workspace::new();
    for (name, text) in ('a'..='e').zip(parts) {
        before.insert(&format!("/{name}"), text).expect("a path with a name");
    }
    let limits = Limits {
        script_bytes: 100_000,
        commands: 200,
        regex_bytes: 20_000,
        all_regexes_bytes: 500_000,
        matches: 2_000,
        searched_bytes: 1 << 24,
        output_bytes: 200_000,
        registers: 20,
        register_bytes: 50_000,
    };
    for name in [tool::EDL, tool::GET_FILE] {
        let input = serde_json::json!({ "script": script, "paths": [script] });
        let _ = tool::call(name, &mut before.clone(), &input, &limits);
    }
    match Script::parse_within(script, &limits) {
        Ok(parsed) => check_run(&parsed, &before, &limits),
        Err(error) => {
            assert!(error.line <= script.matches('\n').count() + 1, "{error}");
            assert!(error.column <= script.chars().count() + 1, "{error}");
            assert!(error.to_string().len() < 4_000, "{error}");
        }
    }
}

fn check_run(script: &Script, before: &Workspace, limits: &Limits) {
    let mut after = before.clone();
    let report = script.run_within(&mut after, limits);
    let mut again = before.clone();
    assert_eq!(script.run_within(&mut again, limits), report, "a run depends on nothing else");
    assert_eq!(after, again);

    assert_eq!(report.is_ok(), report.failures.is_empty());
    assert_eq!(report.to_string().starts_with("OK"), report.is_ok());
    for failure in &report.failures {
        let path = failure.path.as_str();
        assert_eq!(after.text(path), before.text(path), "a failed file is untouched");
        assert_eq!(after.version(path), before.version(path), "a failed file is not written");
        assert!(report.changes.iter().all(|change| change.path != failure.path));
    }
    let foretold = script.files_written();
    for change in &report.changes {
        let path = change.path.as_str();
        assert_eq!(change.before.as_deref(), before.text(path));
        assert_eq!(change.created, before.text(path).is_none());
        assert_eq!(Some(change.bytes), after.text(path).map(str::len));
        assert!(foretold.contains(path), "{path} is foretold");
    }
    for (path, text) in after.files() {
        let changed = report.changes.iter().any(|change| change.path == path);
        let unchanged =
            before.text(path) == Some(text) && before.version(path) == after.version(path);
        assert!(changed || unchanged, "{path} changed unsaid");
        let was = before.text(path).map_or(0, str::len);
        assert!(text.len() <= limits.output_bytes.max(was), "{path} is over the limit");
    }
    for (name, bytes) in &report.registers {
        assert_eq!(after.register(name).map(str::len), Some(*bytes));
    }
    assert!(after.registers().count() <= limits.registers);
    assert!(report.to_string().len() < 200_000, "a report stays short");
    let stored = serde_json::to_string(&after).expect("a workspace is plain data");
    assert_eq!(serde_json::from_str::<Workspace>(&stored).ok(), Some(after));
    serde_json::to_string(&report).expect("a report is plain data");
}
