//! Continuing after trouble: turns that broke off, tools that panic, results that are too long, and
//! compactions that a user edits, undoes and redoes.

use std::{borrow::Cow, sync::Arc};

use futures::executor::block_on;
use serde_json::json;
use threadfold::{
    Answer, ContentBlock, Message, ModelAgent, Role, async_trait,
    auto::AutoPolicy,
    log::{Event, LogError},
    message::{CompactionId, ModelErrorKind, Redactor, StopReason, ToolResult, ToolSpec, ToolUse},
    model::{ModelError, Tool, ToolContext, ToolOutput},
    recall::Recall,
    session::{LastTurn, Session, SessionError, SessionEvent},
    strategy::{KeepRecent, Summarize},
    testing::{Scripted, ScriptedModel},
};

use crate::support::bench::{Bench, bench, calls, events, say, within};
use crate::support::recalled::recalled;

/// A tool that panics if it is asked to, and otherwise answers with many lines.
#[derive(Debug)]
struct Wild;

#[async_trait]
impl Tool for Wild {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("wild", "Panics or answers at length.", json!({"type": "object"}))
    }

    async fn call(
        &self,
        call: &ToolUse,
        _: &ToolContext<'_>,
    ) -> Result<ToolOutput, Box<dyn std::error::Error + Send + Sync>> {
        assert!(!call.input.as_str().contains("panic"), "as asked");
        let lines: Vec<String> = (0..2_000).map(|line| format!("line {line} of it")).collect();
        Ok(ToolOutput::from(lines.join("\n")))
    }
}

fn continued(session: &mut Session) -> Result<String, SessionError> {
    block_on(session.continue_turn().into_future()).map(|reply| reply.text)
}

fn broken() -> Scripted {
    Scripted::Error(ModelError::new(ModelErrorKind::Other, "the line is dead"))
}

fn stopped(text: &str, stop_reason: StopReason) -> Scripted {
    Answer::new(Message::assistant(text), stop_reason, None).into()
}

fn texts(message: &Message) -> Vec<&str> {
    message.tool_results().flat_map(|result| &result.content).filter_map(text_of).collect()
}

fn text_of(block: &ContentBlock) -> Option<&str> {
    block.as_text().map(|text| text.as_str())
}

#[test]
fn a_turn_continues_after_a_failed_model_and_a_dropped_stream() {
    let call = || Scripted::from(calls(&[("a", "quick", "{}")]));
    let mut bench = bench([broken(), call(), broken(), "Done.".into()], |builder| builder);
    say(&mut bench.session, "Go.").unwrap_err();
    assert_eq!(bench.session.messages().len(), 1);
    continued(&mut bench.session).unwrap_err();
    assert_eq!(continued(&mut bench.session).unwrap(), "Done.");
    // There is one message of the user, and the call was not made again.
    let roles: Vec<Role> = bench.session.messages().iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::User, Role::Assistant]);
    bench.assert_whole();
}

#[test]
fn failures_of_the_model_are_none_of_compactions() {
    let long = Scripted::from("A long story. ".repeat(2_000).as_str());
    let broken = || Scripted::Error(ModelError::new(ModelErrorKind::Other, "the line is dead"));
    let script = [long, broken(), broken(), broken(), broken(), broken()];
    let policy = AutoPolicy { after_turn: true, estimates_usage: true, ..AutoPolicy::default() };
    // Nothing is compacted before a request, because the thread is under the trigger then.
    let mut bench = within(9_000, script, |builder| builder.policy(policy));
    say(&mut bench.session, "Tell me one.").unwrap();
    for _ in 0..5 {
        let events = events(&mut bench.session, "And then?");
        let notice = events.iter().flatten().find(|it| matches!(it, SessionEvent::Notice { .. }));
        assert_eq!(notice, None);
    }
}

#[test]
fn interrupted_calls_are_answered_before_the_turn_continues() {
    let call = Scripted::from(calls(&[("a", "slow", "{}")]));
    let mut bench = bench([call, "Done.".into()], |builder| builder);
    let mut events = bench.session.send("Go.");
    // Drop the turn while its tool runs.
    while let Some(event) = block_on(events.next()) {
        if matches!(event.unwrap(), SessionEvent::ToolStarted { .. }) {
            break;
        }
    }
    drop(events);
    assert_eq!(continued(&mut bench.session).unwrap(), "Done.");
    let cancelled = "Cancelled before its result arrived. It may have taken effect.";
    assert_eq!(texts(&bench.session.messages()[2]), [cancelled]);
    bench.assert_whole();
}

#[test]
fn the_results_of_calls_that_finished_before_the_turn_was_dropped_are_kept() {
    let call = Scripted::from(calls(&[("s", "slow", "{}"), ("q", "quick", "{}")]));
    let mut bench = bench([call, "Done.".into()], |builder| builder);
    let mut events = bench.session.send("Go.");
    let finished = loop {
        let event = block_on(events.next()).unwrap().unwrap();
        if let SessionEvent::ToolFinished { id, content, .. } = event {
            break (id, content);
        }
    };
    drop(events);
    assert_eq!(continued(&mut bench.session).unwrap(), "Done.");
    let results: Vec<ToolResult> = bench.session.messages()[2].tool_results().cloned().collect();
    let [slow, quick] = &results[..] else { panic!("{results:?}") };
    assert!(slow.is_error && !quick.is_error, "{results:?}");
    assert_eq!((&quick.tool_use_id, &quick.content), (&finished.0, &finished.1));
    bench.assert_whole();
}

#[test]
fn after_a_crash_another_process_continues_the_turn() {
    let call = Scripted::from(calls(&[("a", "quick", "{}")]));
    let mut first = bench([call, broken()], |builder| builder);
    say(&mut first.session, "Go.").unwrap_err();
    let Bench { session, store, .. } = first;
    drop(session);
    let agent = ModelAgent::new(Arc::new(ScriptedModel::new(["Done."])));
    let builder = Session::builder(agent).thread("thread-1".parse().unwrap()).store(store);
    let mut session = block_on(builder.open()).unwrap();
    assert_eq!(continued(&mut session).unwrap(), "Done.");
    assert_eq!(session.messages().len(), 4);
}

#[test]
fn a_cut_off_answer_is_continued_by_a_prompt_and_a_paused_one_is_sent_back() {
    for (stop_reason, messages) in [(StopReason::MaxTokens, 4), (StopReason::Aborted, 4)] {
        let script = [stopped("Half", stop_reason), "of it.".into()];
        let mut bench = bench(script, |builder| builder);
        say(&mut bench.session, "Go.").unwrap();
        assert_eq!(continued(&mut bench.session).unwrap(), "of it.");
        assert_eq!(bench.session.messages().len(), messages);
        let asked = &bench.session.messages()[2];
        assert!(!asked.is_typed() && asked.content[0].kind() == "system_reminder");
        bench.assert_whole();
    }
    let script = [stopped("Wait", StopReason::PauseTurn), broken(), "for it.".into()];
    let mut bench = bench(script, |builder| builder);
    say(&mut bench.session, "Go.").unwrap_err();
    assert_eq!(continued(&mut bench.session).unwrap(), "for it.");
    assert_eq!(bench.session.messages().len(), 3);
}

#[test]
fn there_is_nothing_to_continue_after_a_complete_answer_or_before_the_first_message() {
    let mut bench = bench(["Done."], |builder| builder);
    let nothing = continued(&mut bench.session).unwrap_err();
    assert!(matches!(nothing, SessionError::NothingToContinue { turn: LastTurn::NeverBegan }));
    say(&mut bench.session, "Go.").unwrap();
    let before = bench.session.messages().clone();
    continued(&mut bench.session).unwrap_err();
    assert_eq!(bench.session.messages()[..], before[..]);
}

#[test]
fn after_a_dropped_stream_the_host_knows_whether_the_text_is_in_the_thread() {
    let mut bench = bench(["One.", "Two.", "Three."], |builder| builder);
    let handle = bench.session.handle();
    say(&mut bench.session, "First.").unwrap();
    drop(bench.session.send("Never polled."));
    assert!(!handle.is_text_in_thread());
    let turn = match continued(&mut bench.session).unwrap_err() {
        SessionError::NothingToContinue { turn } => turn,
        other => panic!("{other}"),
    };
    assert_eq!(turn, LastTurn::NeverBegan);
    let mut events = bench.session.send("Polled.");
    assert!(block_on(events.next()).is_some());
    assert!(events.is_text_in_thread());
    drop(events);
    assert!(handle.is_text_in_thread());
    assert_eq!(continued(&mut bench.session).unwrap(), "Three.");
    let error = continued(&mut bench.session).unwrap_err();
    assert!(matches!(error, SessionError::NothingToContinue { turn: LastTurn::Over }), "{error}");
}

#[test]
fn a_tool_that_panics_gets_an_error_result_and_its_siblings_finish() {
    let asked = calls(&[("a", "wild", "{\"panic\":1}"), ("b", "slow", "{}")]);
    let script = [Scripted::from(asked), "Done.".into()];
    let mut bench = bench(script, |builder| builder.tool(Arc::new(Wild)));
    assert_eq!(say(&mut bench.session, "Go.").unwrap().text, "Done.");
    assert_eq!(texts(&bench.session.messages()[2]), ["The tool panicked: as asked.", "slow {}"]);
    bench.assert_whole();
}

#[test]
fn a_host_may_let_the_panic_of_a_tool_through() {
    let script = [Scripted::from(calls(&[("a", "wild", "{\"panic\":1}")])), "Done.".into()];
    let mut bench = bench(script, |builder| builder.tool(Arc::new(Wild)).tool_panics_unwind());
    let turn = std::panic::AssertUnwindSafe(|| say(&mut bench.session, "Go."));
    std::panic::catch_unwind(turn).unwrap_err();
    assert_eq!(continued(&mut bench.session).unwrap(), "Done.");
    bench.assert_whole();
}

#[test]
fn a_long_result_is_cut_on_arrival_and_can_be_recalled_by_its_call() {
    let script =
        [Scripted::from(calls(&[("a", "wild", "{}"), ("b", "quick", "{}")])), "Ok.".into()];
    let mut bench =
        bench(script, |builder| builder.tool(Arc::new(Wild)).recall_tool().max_tool_result(300));
    say(&mut bench.session, "Go.").unwrap();
    let texts = texts(&bench.session.messages()[2]);
    assert!(texts[0].starts_with("line 0 of it\n") && texts[0].ends_with("line 1999 of it"));
    assert!(texts[0].len() < 1_000 && texts[1].contains("{\"call\":\"a\"}"), "{texts:?}");
    assert_eq!(texts[2], "quick {}", "a short result stays whole");

    // The log holds the whole of it, and recall reads it in pieces.
    let log = bench.session.log();
    let cut = log.events().iter().filter(|logged| matches!(logged.event, Event::ResultCut(_)));
    assert_eq!(cut.count(), 1);
    let (mut read, mut offset) = (String::new(), 0);
    loop {
        let input = json!({"call": "a", "offset": offset});
        let recalled = recalled(&Recall::of(log).within(4_000), &input).unwrap();
        read.push_str(&recalled.passages[0].text);
        match recalled.next {
            Some(next) => offset = next,
            None => break,
        }
    }
    let lines = (0..2_000).filter(|line| read.contains(&format!("line {line} of it\n"))).count();
    assert!(lines >= 1_999, "{lines}");
    let error = Recall::of(log).call(&json!({"call": "zz"})).unwrap_err().to_string();
    assert!(error.starts_with("the result of call zz was not shortened"), "{error}");
    bench.assert_whole();
}

#[test]
fn a_recalled_whole_result_passes_the_redactor() {
    #[derive(Debug)]
    struct Numbers;
    impl Redactor for Numbers {
        fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
            text.replace("line 1000 of it", "[line]").into()
        }
    }
    let wild = Scripted::from(calls(&[("a", "wild", "{}")]));
    let offsets = (0..4).map(|piece| {
        let input = format!("{{\"call\":\"a\",\"offset\":{}}}", piece * 9_000);
        Scripted::from(calls(&[("r", "recall", &input)]))
    });
    let script = [wild].into_iter().chain(offsets).chain([Scripted::from("Ok.")]);
    let mut bench = bench(script.collect::<Vec<_>>(), |builder| {
        let builder = builder.tool(Arc::new(Wild)).recall_tool().max_tool_result(300);
        builder.redactor(Arc::new(Numbers))
    });
    say(&mut bench.session, "Go.").unwrap();
    let thread = serde_json::to_string(bench.session.messages()).unwrap();
    assert!(thread.contains("line 999 of it") && thread.contains("[line]"));
    assert!(!thread.contains("line 1000 of it"));
}

#[test]
fn recalled_text_is_not_cut_again() {
    let wild = Scripted::from(calls(&[("a", "wild", "{}")]));
    let recall = Scripted::from(calls(&[("r", "recall", "{\"call\":\"a\"}")]));
    let mut bench = bench([wild, recall, "Ok.".into()], |builder| {
        builder.tool(Arc::new(Wild)).recall_tool().max_tool_result(300)
    });
    say(&mut bench.session, "Go.").unwrap();
    let texts = texts(&bench.session.messages()[4]);
    assert!(texts.len() == 1 && texts[0].len() > 10_000, "{}", texts[0].len());
}

/// A session after four answers and two compactions, with the thread before each.
fn twice_compacted() -> (Bench, [(CompactionId, Vec<Message>); 2]) {
    let keep = KeepRecent { messages: 2, ..KeepRecent::default() };
    let mut bench =
        bench(["One.", "Two.", "Three.", "Four."], |builder| builder.strategy(Arc::new(keep)));
    let mut made = Vec::new();
    for pair in [["First.", "Second."], ["Third.", "Fourth."]] {
        for text in pair {
            say(&mut bench.session, text).unwrap();
        }
        let before = bench.session.messages().to_vec();
        say(&mut bench.session, "/compact").unwrap();
        made.push((bench.session.log().standing().last().unwrap().id, before));
    }
    (bench, made.try_into().unwrap())
}

#[test]
fn undoing_a_compaction_by_its_id_also_undoes_those_after_it() {
    let (mut bench, [(first, before_first), (second, _)]) = twice_compacted();
    let unknown = block_on(bench.session.undo_compaction(CompactionId(77))).unwrap_err();
    assert!(matches!(unknown, SessionError::Log(LogError::UnknownCompaction { .. })));
    let undone = block_on(bench.session.undo_compaction(first)).unwrap();
    assert_eq!(undone, [second, first]);
    assert_eq!(bench.session.messages().len(), 8);
    assert_eq!(bench.session.messages()[..4], before_first[..]);
    assert_eq!(bench.session.log().standing().count(), 0);
    bench.assert_whole();
    let again = block_on(bench.session.undo_compaction(first)).unwrap_err();
    assert!(matches!(again, SessionError::Log(LogError::UndoneCompaction { .. })));
}

#[test]
fn undone_compactions_can_be_redone_and_later_messages_stay() {
    let (mut bench, [(first, _), (second, before_second)]) = twice_compacted();
    let compacted = bench.session.messages().clone();
    let standing = block_on(bench.session.redo_compaction(second)).unwrap_err();
    assert!(matches!(standing, SessionError::Log(LogError::StandingCompaction { .. })));
    block_on(bench.session.undo_compaction(first)).unwrap();
    // The second one was made for the thread after the first.
    let stale = block_on(bench.session.redo_compaction(second)).unwrap_err();
    assert!(matches!(stale, SessionError::Compaction(_)), "{stale}");
    let requests = bench.model.requests().len();
    block_on(bench.session.redo_compaction(first)).unwrap();
    assert_eq!(bench.session.messages()[..], before_second[..]);
    let done = block_on(bench.session.redo_compaction(second)).unwrap();
    assert_eq!(bench.session.messages()[..], compacted[..]);
    assert_eq!(bench.model.requests().len(), requests, "no model was asked");
    assert_eq!(bench.session.log().standing().last().unwrap().id, done.id);
    bench.assert_whole();
}

#[test]
fn a_prepared_summary_may_be_edited_and_is_checked_again() {
    let story = "Once upon a time there was a parser. ".repeat(30);
    let script = [story.as_str(), "The end.", "A tale.", "A tale."];
    let short = Summarize { messages: 2, ..Summarize::default() };
    let mut bench = bench(script, |builder| builder.strategy(Arc::new(short)));
    say(&mut bench.session, "Never touch src/lexer.rs. Tell me a story.").unwrap();
    say(&mut bench.session, "And then?").unwrap();

    let blank = block_on(bench.session.prepare_compaction()).edited(" \n");
    let error = block_on(bench.session.adopt(blank)).unwrap_err().to_string();
    assert!(error.contains("without a summary"), "{error}");

    let prepared = block_on(bench.session.prepare_compaction());
    assert!(prepared.summary().is_some_and(|text| text.starts_with("A tale.")), "{prepared:?}");
    let edited = prepared.edited("A tale of a parser, by a person.");
    let text = edited.summary().unwrap().to_string();
    assert!(text.starts_with("A tale of a parser, by a person."), "{text}");
    let adopted = block_on(bench.session.adopt(edited)).unwrap();
    block_on(bench.session.undo_compaction(adopted.id)).unwrap();
    let redone = block_on(bench.session.redo_compaction(adopted.id)).unwrap();
    let numbers = bench.session.messages().iter().flat_map(|message| &message.content);
    let numbers = numbers.filter_map(|block| match block {
        ContentBlock::Summary(summary) => summary.compaction,
        _ => None,
    });
    assert_eq!(numbers.collect::<Vec<_>>(), [redone.id]);
    let thread = serde_json::to_string(bench.session.messages()).unwrap();
    assert!(thread.contains("by a person") && thread.contains("Never touch src/lexer.rs."));
    bench.assert_whole();
}

#[test]
fn a_result_that_was_cut_before_the_turn_was_dropped_is_cut_once() {
    let call = calls(&[("w", "wild", "{}"), ("c", "compact_context", "{}")]);
    let script = [Scripted::from(call), "They talked.".into(), "Done.".into()];
    let mut bench = bench(script, |builder| {
        builder.tool(Arc::new(Wild)).recall_tool().compact_context_tool().max_tool_result(200)
    });
    let mut events = bench.session.send("Go.");
    while let Some(event) = block_on(events.next()) {
        let event = event.unwrap();
        if matches!(&event, SessionEvent::ToolFinished { id, .. } if id.as_str() == "c") {
            break;
        }
    }
    drop(events);
    continued(&mut bench.session).unwrap();
    let log = bench.session.log();
    let cut = log.events().iter().filter(|it| matches!(it.event, Event::ResultCut(_)));
    assert_eq!(cut.count(), 1);
    bench.assert_whole();
}
