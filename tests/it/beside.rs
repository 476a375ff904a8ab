//! Work in parallel to a conversation: prepared and adopted compactions, previews, forks.

use std::sync::Arc;

use futures::{executor::block_on, future::BoxFuture};
use threadfold::{
    Answer, CompactionStrategy, ContentBlock, Message, Plan, Role, Usage, async_trait,
    auto::{AutoPolicy, Threshold},
    compact::CompactError,
    drive::{CompactionErrorKind, Conversation, PreparedCompaction},
    log::{CompactionRecord, Event, EventLog, LogError},
    message::{
        Batch, BatchId, CompactionId, CompactionReason, ModelErrorKind, StopReason, Thinking,
        Timestamp,
    },
    model::ModelError,
    session::{CompactionEvent, SessionError},
    store::{Journal, MemoryStore, ThreadStore},
    strategy::{Ask, Brief, KeepRecent, Proposal, Rejection, StrategyError, Summarize, View},
    testing::{Scripted, ScriptedModel},
};

use crate::support::bench::{self, Bench, bench, calls, compactions, events, say, within};

fn summarize() -> Summarize {
    Summarize { messages: 2, user_messages: 0, summary_tokens: 100, ..Summarize::default() }
}

/// A session after this many rounds, whose summaries come from a separate model.
fn with_past(
    rounds: usize,
    script: impl IntoIterator<Item = Scripted>,
    summaries: &ScriptedModel,
) -> Bench {
    let past = (0..rounds).map(|round| Scripted::from(format!("Old answer {round}.")));
    let mut bench = bench(past.chain(script), |builder| {
        builder.strategy(Arc::new(summarize())).fast_model(Arc::new(summaries.clone()))
    });
    for round in 0..rounds {
        let text = format!("Old question {round}: {}", "what of it? ".repeat(30));
        say(&mut bench.session, text).unwrap();
    }
    bench
}

/// A strategy for the background asks the fast model; `summarize` asks the conversation's own,
/// which the job holds a copy of.
fn job(bench: &mut Bench) -> BoxFuture<'static, PreparedCompaction> {
    bench.session.prepare_compaction()
}

fn replies(texts: &[&str]) -> Vec<Scripted> {
    texts.iter().map(|text| Scripted::from(*text)).collect()
}

#[test]
fn messages_appended_during_a_preparation_stay_after_the_compaction() {
    let script = replies(&["Meanwhile.", "They talked.", "After it."]);
    let mut bench = with_past(6, script, &ScriptedModel::default());
    let job = job(&mut bench);
    say(&mut bench.session, "And meanwhile?").unwrap();
    let since = bench.session.messages()[12..].to_vec();

    let prepared = block_on(job);
    let report = prepared.report().unwrap().clone();
    let unchanged = bench.session.messages().clone();
    let done = block_on(bench.session.adopt(prepared)).unwrap();
    assert!(report.after.tokens < report.before.tokens, "{report}");
    assert_eq!((report.before.messages, done.report.before.messages), (12, 14));
    let messages = bench.session.messages();
    assert!(messages[0].is_summary());
    assert_eq!(messages[messages.len() - 2..], since);
    let record = bench.session.log().compaction(done.id).unwrap();
    assert_eq!(
        (&record.reason, record.strategy.as_str()),
        (&CompactionReason::Background, "summarize")
    );

    say(&mut bench.session, "And now?").unwrap();
    assert!(
        bench.last_sent().contains("They talked.") && !bench.last_sent().contains("Old answer 0")
    );
    bench.assert_whole();
    block_on(bench.session.undo_compaction(done.id)).unwrap();
    assert_eq!(bench.session.messages()[..14], unchanged[..]);
    bench.assert_whole();
}

#[test]
fn a_prepared_compaction_starts_when_it_is_adopted() {
    let script = replies(&["They talked.", "Meanwhile.", "After it."]);
    let mut bench = with_past(6, script, &ScriptedModel::default());
    let prepared = block_on(job(&mut bench));
    say(&mut bench.session, "And meanwhile?").unwrap();
    let last = bench.session.log().events().last().unwrap().at;
    block_on(bench.session.adopt(prepared)).unwrap();
    let reported = compactions(&events(&mut bench.session, "And now?"));
    let Some(CompactionEvent::Started { at, .. }) = reported.first() else {
        panic!("{reported:?}")
    };
    assert!(*at > last, "{at:?} and {last:?}");
}

#[test]
fn a_compaction_prepared_for_equal_messages_of_another_process_is_adopted() {
    let mut bench = with_past(6, replies(&["They talked."]), &ScriptedModel::default());
    let prepared = block_on(job(&mut bench));
    let read_again = |message: &Message| -> Message {
        serde_json::from_str(&serde_json::to_string(message).unwrap()).unwrap()
    };
    let mut log = EventLog::new(bench::THREAD.parse().unwrap());
    for message in bench.session.messages().iter() {
        log.append(Timestamp(0), Event::MessageAppended(read_again(message))).unwrap();
    }
    let builder = block_on(bench.session.fork(bench::THREAD.parse().unwrap())).unwrap();
    let mut session = builder.journal(Journal::new(log)).build().unwrap();
    assert!(!session.messages()[0].ptr_eq(&bench.session.messages()[0]));
    block_on(session.adopt(prepared)).unwrap();
    assert!(session.messages()[0].is_summary());
}

#[test]
fn reasoning_appended_during_a_preparation_is_marked() {
    let thought = Thinking::new("hm", Some("sig".into()));
    let thoughtful =
        Message::new(Role::Assistant, vec![thought.into(), ContentBlock::text("Yes.")]);
    let script = vec![Scripted::from(thoughtful), "They talked.".into()];
    let mut bench = with_past(6, script, &ScriptedModel::default());
    let job = job(&mut bench);
    say(&mut bench.session, "And meanwhile?").unwrap();
    assert!(!bench.session.messages().last().unwrap().prefix_rewritten);
    let prepared = block_on(job);
    block_on(bench.session.adopt(prepared)).unwrap();
    assert!(bench.session.messages().last().unwrap().prefix_rewritten);
    bench.assert_whole();
}

#[test]
fn a_compaction_prepared_for_a_thread_that_was_rewritten_is_not_adopted() {
    let script = replies(&["They talked.", "They talked, says the other."]);
    let mut bench = with_past(6, script, &ScriptedModel::default());
    let job = job(&mut bench);
    let reported = compactions(&events(&mut bench.session, "/compact"));
    assert!(reported.last().unwrap().is_end());
    let before = bench.session.messages().clone();

    let failed = block_on(async { bench.session.adopt(job.await).await }).unwrap_err();
    let Some(StrategyError::Rejected(Rejection::Stale(CompactError::Rewritten { message }))) =
        failed.strategy()
    else {
        panic!("{failed}")
    };
    assert_eq!((*message, failed.calls), (0, 1));
    assert!(failed.usage.input > 0, "its cost is reported");
    assert_eq!(*bench.session.messages(), before);
    let Event::CompactionFailed(note) = &bench.session.log().events().last().unwrap().event else {
        panic!("the log must state the usage")
    };
    assert_eq!((note.id, note.usage), (CompactionId(0), failed.usage));
    bench.assert_whole();
}

#[test]
fn the_number_of_a_prepared_compaction_stays_reserved() {
    let error = ModelError::new(ModelErrorKind::Other, "no lamp");
    let script = vec![Scripted::Error(error), "They talked.".into()];
    let mut bench = with_past(6, script, &ScriptedModel::default());
    let job = job(&mut bench);
    let reported = compactions(&events(&mut bench.session, "/compact"));
    assert_eq!(reported.iter().map(|event| event.id()).collect::<Vec<_>>(), [CompactionId(1); 3]);
    let done = block_on(async { bench.session.adopt(job.await).await }).unwrap();
    assert_eq!(done.id, CompactionId(0));
    bench.assert_whole();
}

#[test]
fn a_failed_preparation_is_logged_and_changes_nothing() {
    let error = ModelError::new(ModelErrorKind::Other, "no lamp");
    let mut bench = with_past(6, [Scripted::Error(error)], &ScriptedModel::default());
    let before = bench.session.messages().clone();
    let prepared = block_on(job(&mut bench));
    assert!(prepared.report().is_err());
    let failed = block_on(bench.session.adopt(prepared)).unwrap_err();
    assert!(failed.to_string().contains("no lamp"), "{failed}");
    assert_eq!(*bench.session.messages(), before);
    bench.assert_whole();
}

#[test]
fn a_preview_changes_nothing_and_can_be_adopted() {
    let script = replies(&["A lexer.", "On.", "And on."]);
    let mut bench = with_past(6, script, &ScriptedModel::default());
    let keep = || Arc::new(KeepRecent { messages: 4, ..KeepRecent::default() });
    say(&mut bench.session, "What is in src/lexer.rs?").unwrap();
    (0..2).for_each(|_| drop(say(&mut bench.session, "Go on.").unwrap()));
    let (log, messages) = (bench.session.log().clone(), bench.session.messages().clone());
    let seen = block_on(bench.session.preview(keep()));
    assert_eq!(seen.report().unwrap().after.messages, 4);
    let retention = seen.report().unwrap().retention.as_ref().unwrap();
    let lost: Vec<&str> = retention.missing.iter().map(|fact| &*fact.text).collect();
    assert_eq!(lost, ["src/lexer.rs"]);
    assert_eq!((bench.session.log(), bench.session.messages()), (&log, &messages));

    drop(seen);
    let again = block_on(bench.session.preview(keep()));
    assert_eq!(again.outcome().unwrap().calls, 0);
    let done = block_on(bench.session.adopt(again)).unwrap();
    assert_eq!((done.id, done.report.after.messages), (CompactionId(1), 4));
    bench.assert_whole();
}

#[test]
fn a_fork_continues_independently_with_the_common_history() {
    let script = replies(&["They talked.", "Here.", "There."]);
    let mut bench = with_past(6, script, &ScriptedModel::default());
    say(&mut bench.session, "/compact").unwrap();
    let id = CompactionId(0);
    let (mine, store) = (bench.session.messages().clone(), Arc::new(MemoryStore::default()));
    let fork = block_on(bench.session.fork_before("other".parse().unwrap(), mine.len())).unwrap();
    let mut fork = fork.store(store.clone()).build().unwrap();

    say(&mut bench.session, "Here?").unwrap();
    say(&mut fork, "There?").unwrap();
    assert_eq!(fork.messages()[..mine.len()], mine[..]);
    assert!(fork.messages().last().unwrap().content[0].as_text().unwrap().contains("There."));
    let stored = block_on(store.load(&"other".parse().unwrap())).unwrap().log;
    assert_eq!(stored.events(), fork.log().events());
    assert_eq!(stored.replay(), fork.messages()[..]);
    block_on(fork.undo_compaction(id)).unwrap();
    assert!(fork.messages()[0].content[0].as_text().unwrap().contains("Old question 0"));
    assert!(bench.session.messages()[0].is_summary(), "the other is as it was");
    bench.assert_whole();
}

#[test]
fn a_fork_begins_at_the_requested_position() {
    let script = vec![calls(&[("a", "quick", "{}")]).into(), "Done.".into(), "Anew.".into()];
    let mut bench = with_past(2, script, &ScriptedModel::default());
    say(&mut bench.session, "Work.").unwrap();
    let fork = |at| {
        block_on(bench.session.fork_before("other".parse().unwrap(), at)).unwrap().build().unwrap()
    };
    assert_eq!(fork(3).messages()[..], bench.session.messages()[..3]);
    assert_eq!(fork(0).messages().len(), 0);
    let at_end = block_on(bench.session.fork("other".parse().unwrap())).unwrap();
    let at_end = at_end.build().unwrap();
    assert_eq!(at_end.log().events(), bench.session.log().events(), "nothing is cut");

    // Between a call and its result the call is answered first.
    let mut open = fork(6);
    assert_eq!(open.messages().last().unwrap().tool_uses().count(), 1);
    say(&mut open, "Go on.").unwrap();
    let results: Vec<_> = open.messages()[6].tool_results().collect();
    assert_eq!((results.len(), results[0].is_error), (1, true));

    let none = |at| block_on(bench.session.fork_before("other".parse().unwrap(), at)).unwrap_err();
    assert!(matches!(none(99), SessionError::NoMessage { message: 99, found: 8 }));
}

#[test]
fn a_fork_compacts_when_the_other_does() {
    let policy = AutoPolicy { threshold: Threshold::Tokens(300), ..bench::policy() };
    let mut bench = bench(replies(&["On.", "And on.", "They talked.", "Fine."]), |builder| {
        builder
            .strategy(Arc::new(KeepRecent { messages: 2, ..KeepRecent::default() }))
            .policy(policy)
    });
    say(&mut bench.session, "words ".repeat(150)).unwrap();
    let fork = block_on(bench.session.fork("other".parse().unwrap())).unwrap();
    let mut fork = fork.build().unwrap();
    assert_ne!(compactions(&events(&mut fork, "And now?")), []);
}

#[test]
fn an_answer_has_the_reported_count_or_an_estimate_if_that_is_zero() {
    for (output, text, is_reminded) in [
        (0, "words ".repeat(600), true),
        (400, "Yes.".into(), true),
        (200, "words ".repeat(600), false),
    ] {
        let mut message = calls(&[("a", "quick", "{}")]);
        message.make_mut().content.insert(0, ContentBlock::text(text));
        let turn = Answer::new(message, StopReason::ToolUse, Some(Usage::new(1_000, output)));
        let script = [Scripted::from(turn), "Done.".into()];
        let mut bench = bench(script, |builder| builder.reminder("Be brief.").remind_every(300));
        say(&mut bench.session, "Work.").unwrap();
        let results = &bench.session.messages()[2];
        let is_reminder = |block: &ContentBlock| matches!(block, ContentBlock::SystemReminder(_));
        assert_eq!(results.content.iter().any(is_reminder), is_reminded, "{output} were counted");
    }
}

#[test]
fn a_reminder_is_added_in_a_long_tool_loop() {
    let long = |id: &str| {
        let mut message = calls(&[(id, "quick", "{}")]);
        message.make_mut().content.insert(0, ContentBlock::text("words ".repeat(100)));
        Scripted::from(message)
    };
    let script = [long("a"), long("b"), long("c"), "Done.".into()];
    let mut bench = bench(script, |builder| builder.reminder("Be brief.").remind_every(300));
    say(&mut bench.session, "Work.").unwrap();
    let reminded = |message: &Message| {
        let is_reminder = |block: &ContentBlock| matches!(block, ContentBlock::SystemReminder(_));
        let place = message.content.iter().position(is_reminder)?;
        assert_eq!(
            place,
            message.content.len() - 2,
            "before the checkpoint, after all other blocks"
        );
        Some(place)
    };
    let user = bench.session.messages().iter().filter(|message| message.role == Role::User);
    let reminded: Vec<bool> = user.map(|message| reminded(message).is_some()).collect();
    assert_eq!(reminded, [true, false, true, false]);
    bench.assert_whole();
}

#[test]
fn the_handle_reports_what_the_session_is_doing() {
    let mut bench = with_past(6, replies(&["They talked.", "Fine."]), &ScriptedModel::default());
    let handle = bench.session.handle();
    let status = || (handle.is_busy(), handle.compacting());
    let mut seen = vec![status()];
    let mut stream = bench.session.send("@compact");
    while let Some(event) = block_on(stream.next()) {
        let _ = event.unwrap();
        if seen.last() != Some(&status()) {
            seen.push(status());
        }
    }
    drop(stream);
    let expected = [(false, None), (true, Some(CompactionId(0))), (true, None)];
    assert_eq!(seen, expected);
    assert_eq!(status(), (false, None));
}

#[test]
fn a_dropped_compaction_keeps_its_number() {
    let script = replies(&["They talked.", "They talked, says the job.", "Fine."]);
    let mut bench = with_past(6, script, &ScriptedModel::default());
    let mut stream = bench.session.send("/compact");
    let first = block_on(stream.next()).unwrap().unwrap();
    drop(stream);
    assert_eq!(compactions(&[Ok(first)])[0].id(), CompactionId(0));

    let job = job(&mut bench);
    let reported = compactions(&events(&mut bench.session, "And now?"));
    assert!(matches!(&reported[..], [CompactionEvent::Cancelled { id: CompactionId(0), .. }]));
    let done = block_on(async { bench.session.adopt(job.await).await }).unwrap();
    assert_eq!(done.id, CompactionId(1));
    bench.assert_whole();
}

#[test]
fn a_preparation_with_a_number_in_use_is_refused_and_logged() {
    let script = replies(&["They talked.", "They talked, says the job."]);
    let mut bench = with_past(6, script, &ScriptedModel::default());
    let again = |bench: &Bench| {
        let builder = block_on(bench.session.fork(bench::THREAD.parse().unwrap())).unwrap();
        let builder = builder.thread(bench::THREAD.parse().unwrap()).store(bench.store.clone());
        block_on(builder.open()).unwrap()
    };
    bench.session = again(&bench);
    let job = job(&mut bench);
    // The resumed session does not know the reserved numbers.
    bench.session = again(&bench);
    say(&mut bench.session, "/compact").unwrap();
    block_on(bench.session.undo_compaction(CompactionId(0))).unwrap();
    let (before, log) = (bench.session.messages().clone(), bench.session.log().len());

    let failed = block_on(async { bench.session.adopt(job.await).await }).unwrap_err();
    let taken = Rejection::NumberTaken { id: CompactionId(0) };
    let is_taken =
        |error: &StrategyError| matches!(error, StrategyError::Rejected(error) if *error == taken);
    assert!(failed.strategy().is_some_and(is_taken), "{failed}");
    let Event::CompactionFailed(note) = &bench.session.log().events().last().unwrap().event else {
        panic!("the log must state the usage")
    };
    assert_eq!((note.id, note.usage), (CompactionId(1), failed.usage));
    assert!(note.usage.input > 0);
    assert_eq!((bench.session.log().len(), bench.session.messages()), (log + 1, &before));
    bench.assert_whole();
}

#[test]
fn a_resumed_session_draws_no_checkpoint_twice() {
    let script = replies(&["They talked.", "Fine.", "Fine.", "Fine."]);
    let mut bench = with_past(4, script, &ScriptedModel::default());
    say(&mut bench.session, "/compact").unwrap();
    let builder = block_on(bench.session.fork("other".parse().unwrap())).unwrap();
    let thread = bench::THREAD.parse().unwrap();
    bench.session = block_on(builder.thread(thread).store(bench.store.clone()).open()).unwrap();
    for _ in 0..3 {
        say(&mut bench.session, "And now?").unwrap();
    }
    block_on(bench.session.undo_compaction(CompactionId(0))).unwrap();
    let blocks = bench.session.messages().iter().flat_map(|message| message.content.clone());
    let ids: Vec<_> = blocks
        .filter_map(|block| match block {
            ContentBlock::Checkpoint(checkpoint) => Some(checkpoint.id),
            _ => None,
        })
        .collect();
    let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!((ids.len(), distinct.len()), (7, 7));
    bench.assert_whole();
}

#[test]
fn a_second_compaction_of_one_number_is_refused_and_the_batches_of_the_first_stay() {
    let id = CompactionId(0);
    let mut journal = Journal::new(EventLog::new(bench::THREAD.parse().unwrap()));
    let batch = Batch::new(BatchId { compaction: id, index: 0 }, "Kept.");
    let plan = Plan::from_splices(0, Vec::new());
    let mut record = CompactionRecord::new(id, CompactionReason::Background, "first", plan.clone());
    record.batches = vec![batch.clone()];
    journal.append(Timestamp(1), Event::Compacted(Box::new(record))).unwrap();

    let mut conversation = Conversation::new(&mut journal);
    let brief = Brief { compaction: Some(id), ..Brief::default() };
    let mut proposal = Proposal::new(plan);
    proposal.batches = vec![Batch { text: "Other.".into(), ..batch.clone() }];
    let outcome = Ok(proposal);
    let failed = block_on(conversation.finish("second", &brief, outcome)).unwrap_err();
    assert!(matches!(
        failed.kind,
        CompactionErrorKind::Log(LogError::IdUsed { id: CompactionId(0) })
    ));
    assert_eq!(journal.log().batches().unwrap(), [&batch]);
}

/// Sums up the first round only, so that a long thread stays over its target.
#[derive(Debug)]
struct FirstRound;

#[async_trait]
impl CompactionStrategy for FirstRound {
    fn name(&self) -> &str {
        "first-round"
    }

    async fn propose(&self, view: &View, _: &mut Ask<'_>) -> Result<Proposal, StrategyError> {
        Ok(Plan::summarise(view.thread.messages(), 0..2, "They talked about the first part.")?
            .into())
    }
}

#[test]
fn an_edited_preview_may_miss_its_target_as_the_preview_did() {
    let answers = (0..7).map(|_| Scripted::from("word ".repeat(1_400)));
    let mut bench = within(20_000, answers, |builder| builder.strategy(Arc::new(FirstRound)));
    for part in 0..7 {
        say(&mut bench.session, format!("Part {part}, please.")).unwrap();
    }
    let prepared = block_on(bench.session.prepare_compaction());
    let after = prepared.report().unwrap().after.tokens;
    let edited = prepared.edited("They talked.");
    assert!(edited.report().unwrap().after.tokens < after);
    block_on(bench.session.adopt(edited)).unwrap();
    bench.assert_whole();
}

#[test]
fn an_edited_summary_is_completed_and_audited_anew() {
    let story = "Once upon a time there was a parser. ".repeat(30);
    let script = replies(&[&story, "The end.", "They read src/parse_main.rs."]);
    let strategy = Summarize { messages: 2, user_messages: 0, ..Summarize::default() };
    let mut bench = bench(script, |builder| builder.strategy(Arc::new(strategy)));
    say(&mut bench.session, "Read src/parse_main.rs and tell me a story.").unwrap();
    say(&mut bench.session, "And then?").unwrap();
    let prepared = block_on(bench.session.prepare_compaction());
    let edited = prepared.edited("They talked.");
    let text = edited.summary().unwrap();
    assert!(text.starts_with("They talked.") && text.contains("src/parse_main.rs"), "{text}");
    let blind = edited.edited("They talked.").report().unwrap().retention.clone().unwrap();
    assert_eq!(blind.missing, []);
}
