//! Secrets that leave the thread.

use std::borrow::Cow;

use threadfold::message::Redactor;

use super::*;
use crate::support::bench::{bench, calls, events, say};

/// Removes one word.
#[derive(Debug)]
struct Secret;

impl Redactor for Secret {
    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if text.contains("hunter2") {
            text.replace("hunter2", "[secret]").into()
        } else {
            text.into()
        }
    }
}

fn everything(values: impl serde::Serialize) -> String {
    serde_json::to_string(&values).unwrap()
}

#[test]
fn secrets_do_not_leave_the_thread() {
    let summaries = ScriptedModel::new(["The password was changed.", "It was changed again."]);
    let fold = Rolling { keep_recent: 2, ..Rolling::default() };
    let script = [
        calls(&[("a", "quick", r#"{"password": "hunter2"}"#)]).into(),
        Scripted::from("Old answer hunter2."),
        "Old answer 2.".into(),
        "Fine.".into(),
    ];
    let mut bench = bench(script, |builder: SessionBuilder| {
        builder
            .strategy(Arc::new(fold))
            .fast_model(Arc::new(summaries.clone()))
            .system("The door opens with hunter2.")
            .redactor(Arc::new(Secret))
    });
    for text in ["My password is hunter2. ", "Which one? "] {
        say(&mut bench.session, text.repeat(20)).unwrap();
    }
    let reported = events(&mut bench.session, "@compact hunter2 is the word");
    let reported: Vec<SessionEvent> = reported.into_iter().map(Result::unwrap).collect();

    let asked = everything(summaries.requests());
    assert!(asked.contains("[secret]") && !asked.contains("hunter2"), "{asked}");
    let kept = bench.session.log().batches().unwrap();
    assert!(!kept.is_empty() && !everything(&kept).contains("hunter2"), "{kept:?}");
    let compaction = |event: &&SessionEvent| {
        matches!(event, SessionEvent::Compaction(_) | SessionEvent::Notice { .. })
    };
    let lines: Vec<&SessionEvent> = reported.iter().filter(compaction).collect();
    assert!(lines.len() > 2 && !everything(&lines).contains("hunter2"), "{lines:?}");
    // The agent's own model still gets the original text.
    assert!(bench.last_sent().contains("hunter2 is the word"));
    bench.assert_whole();
}

#[test]
fn displayed_errors_contain_no_secrets() {
    let error = ModelError::new(ModelErrorKind::Other, "no such word: hunter2");
    let summaries = ScriptedModel::default();
    let past = (0..6).map(|round| Scripted::from(format!("Old answer {round}.")));
    let mut bench = bench(past.chain([Scripted::Error(error)]), |builder| {
        builder
            .strategy(Arc::new(summarize()))
            .fast_model(Arc::new(summaries.clone()))
            .redactor(Arc::new(Secret))
    });
    for round in 0..6 {
        say(&mut bench.session, format!("Old question {round}: {}", "why? ".repeat(50))).unwrap();
    }
    let reported = events(&mut bench.session, "/compact");
    let reported: Vec<SessionEvent> = reported.into_iter().map(Result::unwrap).collect();
    let text = everything(&reported);
    assert!(text.contains("no such word: [secret]") && !text.contains("hunter2"), "{text}");
}
