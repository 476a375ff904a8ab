//! An unknown window: the host is notified, and the session learns from the first refusal.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use futures::executor::block_on;
use threadfold::{
    ContextWindow, EventLog, Message, ModelAgent, Session,
    auto::{AutoCompactor, AutoPolicy, Input, Pressure, Refusal},
    message::{CompactionReason, ModelError, ModelErrorKind, Origin, Timestamp},
    session::{SessionError, SessionEvent},
    store::Journal,
    wire::classify_error,
};

use super::provider::{Provider, lines, notices, reasons, unreported};
use crate::support::bench::{events, say};

/// The true window of the provider.
const WINDOW: u64 = 50_000;

fn too_long(size: u64) -> Option<ModelError> {
    let body = br#"{"error": {"message": "prompt is too long"}}"#;
    let error = classify_error(400, body);
    let unstated = matches!(error.kind, ModelErrorKind::Overflow { limit: None, .. });
    assert!(unstated, "{:?}", error.kind);
    (size > WINDOW).then_some(error)
}

/// The notices that say that the window is unknown.
fn unknown(reports: &[Result<SessionEvent, SessionError>]) -> usize {
    let says = |notice: &String| {
        let notice = notice.to_lowercase();
        let unknown = ["unknown", "not known", "no window"];
        notice.contains("window") && unknown.iter().any(|words| notice.contains(words))
    };
    notices(reports).iter().filter(|notice| says(notice)).count()
}

#[test]
fn an_unknown_window_is_reported_once_and_learned_from_the_first_refusal() {
    let provider = Provider::new(|_, _| Message::assistant(lines(2_000))).refusing(too_long);
    let mut session = provider.session(None, |builder| builder);
    let mut reports = events(&mut session, "Turn 0.");
    assert_eq!(unknown(&reports), 1, "{:?}", notices(&reports));
    for turn in 1..100 {
        reports.extend(events(&mut session, &format!("Turn {turn}.")));
    }
    let errors: Vec<_> = reports.iter().filter_map(|event| event.as_ref().err()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(unknown(&reports), 1, "{:?}", notices(&reports));
    assert!((1..=3).contains(&provider.refused()), "{} refusals", provider.refused());
    assert!(reasons(&reports).len() > 3, "{:?}", reasons(&reports));
    let usage = session.token_usage();
    assert!(usage.percent_used > 0.0 && usage.percent_used <= 100.0, "{usage:?}");
    assert_eq!(unreported(&reports), Vec::<String>::new());
}

#[test]
fn the_window_is_that_of_the_model_that_answered_last() {
    let answer = |model: &str| {
        let mut message = Message::assistant("Fine.");
        message.make_mut().origin = Some(Origin::new("openai-chat", Some(model.into())));
        message
    };
    let models = ["gpt-4o", "a-model-of-ours", "claude-2.1"];
    let provider = Provider::new(move |_, place| answer(models[place]));
    let mut session = provider.session(None, |builder| builder);
    let mut windows = vec![session.window()];
    for turn in 0..3 {
        say(&mut session, format!("Turn {turn}.")).unwrap();
        windows.push(session.window());
    }
    let known = |tokens| Some(ContextWindow::new(tokens));
    assert_eq!(windows, [None, known(128_000), known(128_000), known(100_000)]);
    // A resumed session knows it from its log, or from the messages that it begins with.
    let fork = block_on(session.fork("other".parse().unwrap())).unwrap().build().unwrap();
    assert_eq!(fork.window(), known(100_000));
    let messages = session.messages()[..4].to_vec();
    let journal = Journal::new(EventLog::new("another".parse().unwrap()));
    let builder = Session::builder(ModelAgent::new(Arc::new(provider))).journal(journal);
    let session = builder.messages(messages).build().unwrap();
    assert_eq!((session.window(), session.log().len()), (known(128_000), 4));
}

#[test]
fn without_reported_counts_the_estimate_triggers_compactions_in_time() {
    let provider = Provider::new(|_, _| Message::assistant(lines(4_000))).without_usage();
    let mut session = provider.session(Some(WINDOW), |builder| builder);
    let reports: Vec<_> =
        (0..16).flat_map(|turn| events(&mut session, &format!("Turn {turn}."))).collect();
    let reasons = reasons(&reports);
    assert!(!reasons.is_empty());
    assert!(reasons.iter().all(|reason| *reason == CompactionReason::Threshold), "{reasons:?}");
}

#[test]
fn a_host_that_set_the_window_gets_no_notice() {
    let provider = Provider::new(|_, _| Message::assistant("Fine."));
    let mut session = provider.session(Some(WINDOW), |builder| builder);
    let reports = events(&mut session, "Hi.");
    assert_eq!(notices(&reports), Vec::<String>::new());
}

/// A provider that refuses its first request, although it fits, and later only requests that are
/// too long.
fn wrong_once() -> Provider {
    let is_wrong = AtomicBool::new(true);
    let refuse = move |size| {
        let size = if is_wrong.swap(false, Ordering::Relaxed) { u64::MAX } else { size };
        too_long(size)
    };
    Provider::new(|_, _| Message::assistant("Fine.")).refusing(refuse).without_usage()
}

#[test]
fn a_wrong_refusal_is_forgotten_once_a_longer_request_was_answered() {
    let provider = wrong_once();
    let mut session = provider.session(None, |builder| builder.system(lines(300)));
    assert!(say(&mut session, "Go on with part 1.").is_err());
    assert!(session.window().is_some());
    assert_eq!(say(&mut session, "Go on with part 2.").unwrap().text, "Fine.");
    assert_eq!(session.window(), None);
}

#[test]
fn an_implausible_count_changes_nothing_about_the_refused_size() {
    let mut auto = AutoCompactor::new(AutoPolicy::default()).unwrap();
    let pressure = Pressure { reported: Some(u64::MAX), thread: 1_000, ..Pressure::default() };
    let refusal = Input::Overflowed { pressure, refusal: Refusal::default() };
    auto.handle(Timestamp(0), refusal);
    assert_eq!(auto.window(None), Some(ContextWindow::new(999)));
}
