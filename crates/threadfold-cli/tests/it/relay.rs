//! The state machine of a proxy: after any failure, the original request is sent.

use threadfold::{
    ContextWindow, Message, Request,
    auto::AutoCompactor,
    message::{ModelErrorKind, Timestamp},
};
use threadfold_cli::relay::{Relay, RelayOptions, RelayStep, View};

fn request(answer: usize) -> Request {
    let old = Message::assistant("A long story. ".repeat(answer));
    Request::new(vec![Message::user("Tell me."), old, Message::user("And then?")])
}

fn options(window: u64) -> RelayOptions {
    let window = Some(ContextWindow::new(window));
    RelayOptions { window, ..RelayOptions::default() }
}

fn auto() -> AutoCompactor {
    AutoCompactor::new(Default::default()).unwrap()
}

const OVERFLOW: ModelErrorKind =
    ModelErrorKind::Overflow { limit: Some(500), found: None, output: None };

#[test]
fn a_failure_sends_what_came_and_after_a_refusal_passes_it_on() {
    let mut auto = auto();
    let mut relay = Relay::new(request(300), None, &options(1_000), &mut auto, Timestamp(1));
    assert!(matches!(relay.step(), RelayStep::Compact { .. }));
    relay.failed(&mut auto, Timestamp(2));
    assert_eq!((relay.step(), relay.request()), (&RelayStep::Send, None));
    relay.refused(&OVERFLOW, &mut auto, Timestamp(3));
    assert!(matches!(relay.step(), RelayStep::Compact { .. }));
    relay.failed(&mut auto, Timestamp(4));
    assert_eq!(relay.step(), &RelayStep::Refused);
}

#[test]
fn a_view_of_another_thread_is_a_failure() {
    let (mut auto, far) = (auto(), View { covers: 9, messages: vec![Message::user("Else.")] });
    let mut relay = Relay::new(request(300), Some(&far), &options(1_000), &mut auto, Timestamp(1));
    assert_eq!(relay.request(), None);
    relay.compacted(&far, &mut auto, Timestamp(2));
    assert_eq!((relay.step(), relay.request()), (&RelayStep::Send, None));
}

#[test]
fn a_view_is_applied_before_the_size_is_judged() {
    let (mut auto, view) = (auto(), View { covers: 2, messages: vec![Message::user("A story.")] });
    let relay = Relay::new(request(300), Some(&view), &options(1_000), &mut auto, Timestamp(1));
    assert_eq!(relay.step(), &RelayStep::Send);
    assert_eq!(relay.request().unwrap().messages.len(), 2);
}

#[test]
fn only_a_refusal_for_the_length_leads_to_a_compaction() {
    let mut auto = auto();
    let mut relay = Relay::new(request(3), None, &options(1_000), &mut auto, Timestamp(1));
    relay.refused(&ModelErrorKind::Authentication, &mut auto, Timestamp(2));
    assert_eq!(relay.step(), &RelayStep::Refused);
}

#[test]
fn the_counts_of_a_provider_move_the_threshold() {
    let (mut auto, mut options) = (auto(), options(1_500));
    let relay = Relay::new(request(250), None, &options, &mut auto, Timestamp(1));
    let estimate = relay.estimate();
    assert_eq!((relay.step(), relay.tokens()), (&RelayStep::Send, estimate));
    // The provider counts a token for two bytes, where three were thought of.
    (0..8).for_each(|_| assert!(options.ratio.learn(estimate, estimate * 3 / 2)));
    let relay = Relay::new(request(250), None, &options, &mut auto, Timestamp(2));
    assert_eq!(relay.estimate(), estimate);
    let RelayStep::Compact { target: Some(target), .. } = relay.step() else {
        panic!("{:?}", relay.step())
    };
    // Half of the window, in the proxy's own tokens.
    assert!(relay.tokens() > estimate * 4 / 3 && *target < 750 * 3 / 4, "{target}");
}

#[test]
fn a_refusal_teaches_the_ratio() {
    let mut auto = auto();
    let mut relay = Relay::new(request(100), None, &options(1_000), &mut auto, Timestamp(1));
    let before = relay.tokens();
    let found = Some(relay.estimate() * 2);
    let error = ModelErrorKind::Overflow { limit: None, found, output: None };
    relay.refused(&error, &mut auto, Timestamp(2));
    assert!(relay.tokens() > before && relay.ratio().bytes_per_token() < 3.0);
}
