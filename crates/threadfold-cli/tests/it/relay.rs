//! The state machine of a proxy: after any failure, the original request is sent.

use threadfold::{
    ContextWindow, Message, Request, TokenCounter,
    auto::{AutoCompactor, AutoPolicy, MAX_SENDS},
    legality,
    message::{ModelErrorKind, Role, Summary, Timestamp, ToolResult, ToolUse},
    tokens::ByteEstimate,
    wire::{DecodeOptions, Dialect, EncodeOptions},
};
use threadfold_cli::relay::{Relay, RelayStep, View};
use threadfold_testing::shared::splitmix64;

fn request(answer: usize) -> Request {
    let old = Message::assistant("A long story. ".repeat(answer));
    Request::new(vec![Message::user("Tell me."), old, Message::user("And then?")])
}

fn window(tokens: u64) -> Option<ContextWindow> {
    Some(ContextWindow::new(tokens))
}

fn auto() -> AutoCompactor {
    AutoCompactor::new(Default::default()).unwrap()
}

const OVERFLOW: ModelErrorKind =
    ModelErrorKind::Overflow { limit: Some(500), found: None, output: None };

#[test]
fn a_failure_sends_what_came_and_after_a_refusal_passes_it_on() {
    let auto = auto();
    let mut relay = Relay::new(request(300), None, window(1_000), auto, Timestamp(1));
    assert!(matches!(relay.step(), RelayStep::Compact { .. }));
    relay.failed(Timestamp(2));
    assert_eq!((relay.step(), relay.request()), (&RelayStep::Send, None));
    relay.refused(&OVERFLOW, Timestamp(3));
    assert!(matches!(relay.step(), RelayStep::Compact { .. }));
    relay.failed(Timestamp(4));
    assert_eq!(relay.step(), &RelayStep::Refused);
}

#[test]
fn a_view_of_another_thread_is_a_failure() {
    let (auto, far) = (auto(), View::new(9, vec![Message::user("Else.")]));
    let mut relay = Relay::new(request(300), Some(&far), window(1_000), auto, Timestamp(1));
    assert_eq!(relay.request(), None);
    relay.compacted(&far, Timestamp(2));
    assert_eq!((relay.step(), relay.request()), (&RelayStep::Send, None));
}

#[test]
fn a_view_is_applied_before_the_size_is_judged() {
    let (auto, view) = (auto(), View::new(2, vec![Message::user("A story.")]));
    let relay = Relay::new(request(300), Some(&view), window(1_000), auto, Timestamp(1));
    assert_eq!(relay.step(), &RelayStep::Send);
    assert_eq!(relay.request().unwrap().messages.len(), 2);
}

#[test]
fn the_names_of_people_pass_a_compaction_unchanged() {
    let old = "A long story. ".repeat(300);
    let body = format!(
        r#"{{"model":"m","messages":[{{"role":"user","name":"ann","content":"Tell me."}},{{"role":"assistant","content":"{old}"}},{{"role":"user","name":"bob","content":"And then?"}}]}}"#
    );
    let read = Dialect::OpenAiChat.decode_slice(body.as_bytes(), &DecodeOptions::default());
    let (auto, view) = (auto(), View::new(2, vec![Message::user("A story.")]));
    let relay = Relay::new(read.unwrap(), Some(&view), window(1_000), auto, Timestamp(1));
    let sent = relay.request().unwrap();
    let body =
        Dialect::OpenAiChat.encode(&sent, &EncodeOptions::default()).body.to_value().unwrap();
    let last = serde_json::json!({"role": "user", "name": "bob", "content": "And then?"});
    assert_eq!(body["messages"][1], last);
}

#[test]
fn only_a_refusal_for_the_length_leads_to_a_compaction() {
    let auto = auto();
    let mut relay = Relay::new(request(3), None, window(1_000), auto, Timestamp(1));
    relay.refused(&ModelErrorKind::Authentication, Timestamp(2));
    assert_eq!(relay.step(), &RelayStep::Refused);
}

#[test]
fn the_counts_of_a_provider_move_the_threshold() {
    let relay = Relay::new(request(250), None, window(1_500), auto(), Timestamp(1));
    let estimate = relay.estimate();
    assert_eq!((relay.step(), relay.tokens()), (&RelayStep::Send, estimate));
    // The provider counts a token for two bytes, where three were thought of.
    let mut auto = relay.into_auto();
    (0..8).for_each(|_| assert!(auto.counted(estimate, estimate * 3 / 2)));
    let relay = Relay::new(request(250), None, window(1_500), auto, Timestamp(2));
    assert_eq!(relay.estimate(), estimate);
    let RelayStep::Compact { target: Some(target), .. } = relay.step() else {
        panic!("{:?}", relay.step())
    };
    // Half of the window, in the proxy's own tokens.
    assert!(relay.tokens() > estimate * 4 / 3 && *target < 750 * 3 / 4, "{target}");
}

#[test]
fn a_refusal_teaches_the_ratio() {
    let auto = auto();
    let mut relay = Relay::new(request(100), None, window(1_000), auto, Timestamp(1));
    let before = relay.tokens();
    let found = Some(relay.estimate() * 2);
    let error = ModelErrorKind::Overflow { limit: None, found, output: None };
    relay.refused(&error, Timestamp(2));
    assert!(relay.tokens() > before && relay.auto().ratio().bytes_per_token() < 3.0);
}

/// A number from 0 to `below` - 1.
fn chance(state: &mut u64, below: u64) -> u64 {
    splitmix64(state) % below
}

/// A view that leaves about this many tokens, but never less than the unread messages.
fn compacted(thread: &[Message], target: u64) -> View {
    let unread = legality::unread_from(thread);
    let floor = ByteEstimate::TRIGGER.messages(&thread[unread..]);
    let words = "word ".repeat((target.saturating_sub(floor + 20) * 3 / 5) as usize);
    let story = Summary::new(format!("Story: {words}"));
    View::new(unread, vec![Message::summary(Role::User, story)])
}

#[test]
fn compactions_that_failed_for_one_request_do_not_take_those_of_the_next() {
    let mut auto = auto();
    for turn in 0..6 {
        let mut relay = Relay::new(request(500), None, window(1_000), auto, Timestamp(turn));
        assert!(matches!(relay.step(), RelayStep::Compact { .. }), "{turn}: {:?}", relay.step());
        relay.failed(Timestamp(turn));
        assert_eq!(*relay.step(), RelayStep::Send, "{turn}");
        auto = relay.into_auto();
    }
}

#[test]
fn no_request_is_sent_more_than_three_times_and_what_did_not_help_is_taken_back() {
    let (mut given_up, mut accepted_smaller, mut seed) = (0, 0, 7);
    for run in 0..400 {
        let window = [4_000, 16_000, 60_000][chance(&mut seed, 3) as usize];
        let assumed = [None, Some(window / 2), Some(window), Some(window * 4)];
        let assumed = assumed[chance(&mut seed, 4) as usize].map(ContextWindow::new);
        let reserve = window * (1 + chance(&mut seed, 150)) / 100;
        let (sum_rule, states) = (chance(&mut seed, 2) == 0, chance(&mut seed, 3) > 0);
        let mut auto = AutoCompactor::new(AutoPolicy::default()).unwrap();
        let mut thread = vec![Message::user("Begin.")];
        let mut view: Option<View> = None;
        for turn in 0..12 {
            thread.push(Message::assistant("a ".repeat(chance(&mut seed, window / 4) as usize)));
            let unread = chance(&mut seed, if turn % 4 == 3 { window * 3 } else { window / 4 });
            let call = ToolUse::new(format!("c{turn}"), "read", serde_json::json!({}));
            thread.push(Message::new(Role::Assistant, vec![call.into()]));
            let result = ToolResult::text(format!("c{turn}"), "r ".repeat(unread as usize));
            thread.push(Message::new(Role::User, vec![result.into()]));
            let mut lies = if chance(&mut seed, 3) == 0 { 1 + chance(&mut seed, 5) } else { 0 };
            let now = Timestamp(turn * 1_000);
            let mut request = Request::new(thread.clone());
            request.max_output = Some(reserve);
            let mut relay = Relay::new(request, view.as_ref(), assumed, auto, now);
            let (mut sent, mut steps) = (Vec::new(), 0);
            let mut unkept = None;
            loop {
                steps += 1;
                assert!(steps < 20, "run {run}, turn {turn}: the relay goes round in a circle");
                match relay.step().clone() {
                    RelayStep::Compact { target, .. } => {
                        let made =
                            compacted(relay.original().messages.as_slice(), target.unwrap_or(100));
                        relay.compacted(&made, now);
                        if sent.is_empty() { view = Some(made) } else { unkept = Some(made) }
                    }
                    RelayStep::Send => {
                        let request = relay.request().unwrap_or_else(|| relay.original().clone());
                        let tokens = ByteEstimate::TRIGGER.request(&request);
                        let unread = legality::unread_from(&request.messages);
                        let whole = legality::unread_from(&thread);
                        assert_eq!(request.messages[unread..], thread[whole..], "run {run}");
                        let output = request.max_output.unwrap_or(0);
                        sent.push(request);
                        let refusal = if lies > 0 {
                            lies -= 1;
                            let limit = [None, Some(1 + tokens / 9), Some(tokens * 2)];
                            let limit = limit[chance(&mut seed, 3) as usize];
                            Some((limit, None, None))
                        } else if sum_rule && tokens + output > window {
                            Some((Some(window), Some(tokens), Some(output)))
                        } else if tokens > window {
                            let limit = states.then_some(window);
                            Some((limit, limit.map(|_| tokens), None))
                        } else {
                            None
                        };
                        let Some((limit, found, output)) = refusal else { break };
                        let error = ModelErrorKind::Overflow { limit, found, output };
                        relay.refused(&error, now);
                    }
                    RelayStep::Refused | _ => break,
                }
            }
            assert!(sent.len() <= MAX_SENDS as usize, "run {run}, turn {turn}: {}", sent.len());
            if *relay.step() == RelayStep::Refused {
                given_up += 1;
                let back = relay.request().unwrap_or_else(|| relay.original().clone());
                assert_eq!(back.messages, sent[0].messages, "run {run}, turn {turn}");
            } else {
                accepted_smaller += usize::from(unkept.is_some());
                view = unkept.or(view);
            }
            auto = relay.into_auto();
        }
    }
    println!("{given_up} given up, {accepted_smaller} accepted after a compaction");
    assert!(given_up > 50 && accepted_smaller > 50);
}

#[test]
fn a_refused_sum_of_prompt_and_answer_leads_to_a_shorter_answer() {
    let (auto, mut request) = (auto(), request(600));
    request.max_output = Some(7_000);
    let prompt = ByteEstimate::TRIGGER.request(&request);
    let mut relay = Relay::new(request.clone(), None, window(8_000), auto, Timestamp(1));
    assert_eq!((relay.step(), relay.request()), (&RelayStep::Send, None));
    let (limit, output) = (Some(8_000), Some(7_000));
    let error = ModelErrorKind::Overflow { limit, found: Some(prompt), output };
    relay.refused(&error, Timestamp(2));
    assert_eq!(relay.step(), &RelayStep::Send);
    let sent = relay.request().unwrap();
    assert_eq!(sent.messages, request.messages);
    let left = 8_000 - prompt;
    assert!((left * 9 / 10..=left).contains(&sent.max_output.unwrap()), "{:?}", sent.max_output);
    let line = relay.why_not_compacted().unwrap();
    assert!(line.contains("sent again with room for"), "{line}");
    // The next request asks for less at once.
    let auto = relay.into_auto();
    let relay = Relay::new(request.clone(), None, window(8_000), auto, Timestamp(3));
    assert_eq!(relay.step(), &RelayStep::Send);
    assert!(relay.request().unwrap().max_output.unwrap() <= left);
}

#[test]
fn a_request_that_fits_is_not_compacted_again_in_vain() {
    // What no compaction removes is under the trigger, and what it leaves is over it.
    let mut auto = AutoCompactor::new(AutoPolicy::default()).unwrap();
    let mut compactions = 0;
    let mut lines = 0;
    for turn in 0..100 {
        let mut request = request(200);
        request.max_output = Some(8_000);
        let mut relay = Relay::new(request, None, window(1_400), auto, Timestamp(turn * 10));
        while let RelayStep::Compact { .. } = relay.step() {
            compactions += 1;
            let view = View::new(1, vec![Message::user("Tell me!")]);
            relay.compacted(&view, Timestamp(turn * 10));
        }
        assert_eq!(relay.step(), &RelayStep::Send);
        lines += u64::from(relay.why_not_compacted().is_some());
        auto = relay.into_auto();
    }
    assert!((1..=3).contains(&compactions), "{compactions}");
    assert!(lines >= 96, "{lines} requests have a line");
}
