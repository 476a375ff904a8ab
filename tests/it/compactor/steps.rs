//! What a loop does before a request and after a refusal.

use std::sync::Mutex;

use async_trait::async_trait;
use futures::executor::block_on;
use threadfold::{
    Answer, Compactor, ContentBlock, ContextWindow, Message, Model, Request, Role, Usage,
    auto::{MAX_SENDS, Refusal},
    compactor::RequestStep,
    drive::Models,
    legality,
    message::{ModelError, ModelErrorKind, StopReason, Timestamp, ToolResult, ToolUse},
    tokens::{ByteEstimate, TokenCounter},
};

/// A model of a window that reads files, and counts more tokens than the estimate.
#[derive(Debug, Default)]
struct Narrow {
    window: u64,
    /// Percent of the estimate that it counts.
    counts: u64,
    states: bool,
    /// Whether prompt and `max_output` together must fit.
    sums: bool,
    asked: Mutex<Vec<(Request, bool)>>,
}

#[async_trait]
impl Model for Narrow {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        let tokens = ByteEstimate::TRIGGER.messages(&request.messages) * self.counts / 100;
        let output = request.max_output.filter(|_| self.sums);
        let fits = tokens + output.unwrap_or(0) <= self.window;
        let number = {
            let mut asked = self.asked.lock().unwrap();
            asked.push((request, fits));
            asked.len()
        };
        if !fits {
            let stated = |tokens| self.states.then_some(tokens);
            let (limit, found) = (stated(self.window), stated(tokens));
            let kind = ModelErrorKind::Overflow { limit, found, output };
            return Err(ModelError::new(kind, "prompt is too long"));
        }
        let input = serde_json::json!({"path": format!("src/part_{number}.rs")});
        let call = ToolUse::new(format!("call_{number}"), "read", input);
        let message = Message::new(Role::Assistant, vec![call.into()]);
        Ok(Answer::new(message, StopReason::ToolUse, Some(Usage::new(tokens, 20))))
    }
}

/// What became of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Answered,
    GivenUp,
    NoRoom,
}

/// A round of a host's loop, as the guide has it.
fn round(
    compactor: &mut Compactor,
    messages: &mut Vec<Message>,
    model: &Narrow,
    summaries: Models<'_>,
) -> Ended {
    let now = Timestamp(0);
    compactor.observe(messages);
    let mut step = compactor.before_request(now);
    loop {
        step = match step {
            RequestStep::Send { max_output } => {
                let request = Request { max_output, ..Request::new(messages.clone()) };
                match block_on(model.complete(request)) {
                    Ok(answer) => {
                        let calls: Vec<ToolUse> = answer.message.tool_uses().cloned().collect();
                        messages.push(answer.message);
                        let result = |call: &ToolUse| {
                            let path = call.input.as_str().to_owned();
                            ToolResult::text(call.id.clone(), format!("{path}\n").repeat(20))
                        };
                        let results = calls.iter().map(|call| result(call).into()).collect();
                        messages.push(Message::new(Role::User, results));
                        return Ended::Answered;
                    }
                    Err(error) => compactor.refused(now, Refusal::of(&error.kind).unwrap()),
                }
            }
            RequestStep::Compact(brief) => {
                let before = messages.clone();
                if block_on(compactor.compact(messages, brief, summaries)).is_err() {
                    assert_eq!(*messages, before);
                }
                compactor.before_request(now)
            }
            RequestStep::GiveUp { before } => {
                *messages = before.to_vec();
                return Ended::GivenUp;
            }
            _ => return Ended::NoRoom,
        };
    }
}

fn begun() -> Vec<Message> {
    vec![Message::user("Read all parts. Never touch the lexer.")]
}

#[test]
fn a_loop_fits_a_window_that_is_smaller_and_counts_more_than_the_host_knows() {
    // A window of which no refusal speaks is tried again once in a while, because a limit that was
    // only concluded may be wrong; one that the host states, with every compaction.
    for (known, window, counts, states, most) in [
        (Some(4_000), 4_000, 100, true, 0),
        (Some(4_000), 4_000, 160, true, 1),
        (Some(4_000), 4_000, 160, false, 1),
        (Some(20_000), 4_000, 110, true, 1),
        (Some(20_000), 4_000, 110, false, 50),
        (None, 4_000, 110, true, 1),
        (None, 4_000, 110, false, 12),
    ] {
        let model = Narrow { window, counts, states, ..Narrow::default() };
        let mut compactor = Compactor::default().with_window(known.map(ContextWindow::new));
        let mut messages = begun();
        let case = format!("{known:?} {counts} {states}");
        for _ in 0..200 {
            let ended = round(&mut compactor, &mut messages, &model, Models::default());
            assert_eq!(ended, Ended::Answered, "{case}");
        }
        let asked = model.asked.into_inner().unwrap();
        let refused = asked.iter().filter(|(_, fits)| !fits).count();
        assert!(refused <= most, "{case}: {refused}");
        for (request, _) in &asked {
            assert_eq!(legality::violations(&request.messages), [], "{case}");
            let text = format!("{:?}", request.messages);
            assert!(text.contains("Never touch the lexer."), "{case}");
        }
        let in_row = asked.split(|(_, fits)| *fits).map(<[_]>::len).max();
        assert!(in_row < Some(MAX_SENDS as usize), "{case}");
    }
}

#[test]
fn an_answer_gets_shorter_before_a_thread_does_and_the_loop_is_refused_once() {
    let model =
        Narrow { window: 8_000, counts: 100, states: true, sums: true, ..Narrow::default() };
    let window = ContextWindow::new(8_000);
    let mut compactor = Compactor::default().with_window(window).with_max_output(4_000);
    let mut messages = begun();
    messages.push(Message::assistant("I read the first part, line by line. ".repeat(345)));
    messages.push(Message::user("And the second?"));
    let before = messages.clone();
    let ended = round(&mut compactor, &mut messages, &model, Models::default());
    assert!(ended == Ended::Answered && messages.starts_with(&before));
    let sent = |model: &Narrow| -> Vec<(Option<u64>, bool)> {
        let asked = model.asked.lock().unwrap();
        asked.iter().map(|(request, fits)| (request.max_output, *fits)).collect()
    };
    let [(Some(4_000), false), (Some(shorter), true)] = sent(&model)[..] else {
        panic!("{:?}", sent(&model));
    };
    assert!((1_000..4_000).contains(&shorter), "{shorter}");
    for _ in 0..100 {
        let ended = round(&mut compactor, &mut messages, &model, Models::default());
        assert_eq!(ended, Ended::Answered);
    }
    let sent = sent(&model);
    assert_eq!(sent.iter().filter(|(_, fits)| !fits).count(), 1);
    assert!(sent.iter().filter(|(output, _)| *output == Some(4_000)).count() > 10, "there is room");
}

#[test]
fn a_loop_gives_up_after_three_sends_and_no_thread_is_emptied() {
    let model = Narrow { window: 0, counts: 100, states: false, ..Narrow::default() };
    let mut compactor = Compactor::default().with_window(ContextWindow::new(8_000));
    let mut messages = begun();
    messages.push(Message::assistant("I read the first part, line by line. ".repeat(100)));
    messages.push(Message::user("And the second?"));
    let before = messages.clone();
    let ended = round(&mut compactor, &mut messages, &model, Models::default());
    assert_eq!((ended, messages), (Ended::GivenUp, before));
    let asked = model.asked.into_inner().unwrap();
    assert!(asked.len() <= MAX_SENDS as usize, "{}", asked.len());
    assert!(asked.iter().all(|(request, _)| {
        request.messages.last() == Some(&Message::user("And the second?"))
    }));
}

#[test]
fn a_compaction_that_fails_or_is_not_carried_out_is_not_asked_for_twice() {
    // Nine tenths of the window: over the threshold, and it fits.
    let mut messages = begun();
    messages.push(Message::assistant("I read it, line by line. ".repeat(108)));
    messages.push(Message::user("And the second?"));
    let mut compactor = Compactor::default().with_window(ContextWindow::new(1_000));
    compactor.observe(&messages);
    assert!((800..1_000).contains(&compactor.context_tokens()), "{}", compactor.context_tokens());
    let now = Timestamp(0);
    let RequestStep::Compact(brief) = compactor.before_request(now) else { panic!() };
    // The host drops the compaction midway, and sends.
    drop(compactor.compact(&mut messages, brief, Models::default()));
    assert!(matches!(compactor.before_request(now), RequestStep::Send { .. }));
    // With the next message it is due again.
    messages.push(Message::assistant("I shall."));
    messages.push(Message::user("Go on."));
    compactor.observe(&messages);
    let RequestStep::Compact(brief) = compactor.before_request(now) else { panic!() };
    let done = block_on(compactor.compact(&mut messages, brief, Models::default())).unwrap();
    assert!(done.report.after.tokens < done.report.before.tokens);
    assert!(matches!(compactor.before_request(now), RequestStep::Send { .. }));
}

#[test]
fn a_window_of_which_nobody_speaks_is_found_after_a_long_result() {
    let model = Narrow { window: 5_000, counts: 100, states: false, ..Narrow::default() };
    let mut compactor = Compactor::default();
    let mut messages = begun();
    for turn in 0..30 {
        let ended = round(&mut compactor, &mut messages, &model, Models::default());
        assert_eq!(ended, Ended::Answered, "{turn}");
        if turn % 10 == 3
            && let Some(ContentBlock::ToolResult(result)) =
                messages.last_mut().and_then(|last| last.make_mut().content.first_mut())
        {
            result.content = vec![ContentBlock::text("line of a log\n".repeat(14_000))];
        }
    }
}

#[test]
fn what_refusals_counted_of_a_request_that_was_given_up_scales_no_later_one() {
    let mut compactor = Compactor::default().with_window(ContextWindow::new(200_000));
    let long = |at: usize| Message::assistant(format!("{at} {}", "I read on. ".repeat(300)));
    let mut thread = vec![Message::user("Read the program.")];
    thread.extend((0..40).map(long));
    thread.push(Message::user("Go on."));
    compactor.observe(&thread);
    let (now, before, mut messages) = (Timestamp(0), compactor.context_tokens(), thread.clone());
    let mut step = compactor.before_request(now);
    let mut sent = 0;
    loop {
        step = match step {
            RequestStep::Send { .. } => {
                sent += 1;
                let tokens = compactor.context_tokens();
                let found = Some(tokens * 2);
                compactor.refused(now, Refusal { limit: Some(tokens), found, output: None })
            }
            RequestStep::Compact(brief) => {
                block_on(compactor.compact(&mut messages, brief, Models::default())).unwrap();
                compactor.before_request(now)
            }
            RequestStep::GiveUp { .. } => break,
            other => panic!("{other:?}"),
        };
    }
    compactor.observe(&thread);
    assert_eq!((sent, compactor.context_tokens()), (MAX_SENDS, before));
}
