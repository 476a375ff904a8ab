//! A compaction system for a log of events.

use std::sync::Arc;

use futures::executor::block_on;
use serde_json::json;
use threadfold::{
    Answer, ContextWindow, EventLog, Message, ModelAgent, Session, StrategyRegistry, Usage,
    auto::AutoPolicy,
    compact::{CompactReport, Size},
    log::{Event, TokenBudget, total_usage},
    message::{CompactionId, CompactionReason, StopReason, Timestamp, ToolResult},
    session::{CompactionDisplay, CompactionEvent, SessionEvent, api, console},
    strategy::{KeepRecent, StrategyError, Summarize},
    testing::{Scripted, ScriptedModel},
};

use crate::support::bench::{Bench, bench, compactions, events, say};

fn answer(text: &str, usage: Option<Usage>) -> Scripted {
    Answer::new(Message::assistant(text), StopReason::EndTurn, usage).into()
}

fn log_of(usages: &[Option<Usage>]) -> EventLog {
    let mut log = EventLog::new("main".parse().unwrap());
    for usage in usages {
        let mut message = Message::assistant("Yes.");
        message.make_mut().usage = *usage;
        log.append(Timestamp(0), Event::MessageAppended(message)).unwrap();
    }
    log
}

/// A session of four rounds that keeps the last two messages.
fn talked() -> Bench {
    let answers = ["One.", "Two.", "Three.", "Four.", "Five."].map(|text| text.repeat(20));
    let keep = KeepRecent { messages: 2, ..KeepRecent::default() };
    let mut bench = bench(answers, |builder| builder.strategy(Arc::new(keep)));
    for text in ["First?", "Second?", "Third?", "Fourth?"] {
        say(&mut bench.session, text).unwrap();
    }
    bench
}

#[test]
fn s002_01_an_answer_carries_the_usage_that_was_reported() {
    let mut bench = bench([answer("Hello!", Some(Usage::new(100, 50)))], |builder| builder);
    say(&mut bench.session, "Hi.").unwrap();
    let usage = bench.session.messages()[1].usage.unwrap();
    assert_eq!((usage.input, usage.output, usage.context_tokens()), (100, 50, 150));
}

#[test]
fn s002_02_a_result_of_a_tool_carries_usage() {
    let mut result = ToolResult::text("t1", "alpha");
    result.usage = Some(Box::new(Usage::new(7, 3)));
    let json = serde_json::to_value(&result).unwrap();
    assert_eq!(json["usage"]["input"], 7);
}

#[test]
fn s002_03_an_answer_without_usage_is_valid() {
    let read: Message = serde_json::from_value(json!({"role": "assistant", "content": "Hello"}))
        .or_else(|_| {
            serde_json::from_value(
                json!({"role": "assistant", "content": [{"type": "text", "text": "Hello"}]}),
            )
        })
        .unwrap();
    assert_eq!(read.usage, None);
}

#[test]
fn s002_04_the_usage_is_in_the_logged_message() {
    let mut bench = bench([answer("Hello!", Some(Usage::new(100, 50)))], |builder| builder);
    say(&mut bench.session, "Hi.").unwrap();
    let logged = bench.session.log().events().iter().find_map(|logged| match &logged.event {
        Event::MessageAppended(message) => message.usage,
        _ => None,
    });
    assert_eq!(logged, Some(Usage::new(100, 50)));
}

#[test]
fn s002_05_without_usage_nothing_is_stored() {
    #[derive(Debug)]
    struct Silent;
    #[threadfold::async_trait]
    impl threadfold::Model for Silent {
        async fn complete(
            &self,
            _: threadfold::Request,
        ) -> Result<Answer, threadfold::model::ModelError> {
            Ok(Answer::new(Message::assistant("Hello!"), StopReason::EndTurn, None))
        }
    }
    let mut session = Session::builder(ModelAgent::new(Arc::new(Silent))).build().unwrap();
    say(&mut session, "Hi.").unwrap();
    assert!(session.messages().iter().all(|message| message.usage.is_none()));
    assert_eq!(total_usage(session.log().events()).events, 0);
}

#[test]
fn s002_07_the_usage_of_a_log_is_summed_up() {
    let total = total_usage(log_of(&[Some(Usage::new(100, 50))]).events());
    assert_eq!((total.total().input, total.total().output, total.events), (100, 50, 1));
}

#[test]
fn s002_08_two_answers_give_300_125_425_2() {
    let log = log_of(&[Some(Usage::new(100, 50)), Some(Usage::new(200, 75))]);
    let total = total_usage(log.events());
    let sum = total.total();
    assert_eq!((sum.input, sum.output, sum.context_tokens(), total.events), (300, 125, 425, 2));
}

#[test]
fn s002_09_events_without_usage_are_passed_over() {
    let total = total_usage(log_of(&[None, Some(Usage::new(1, 2)), None]).events());
    assert_eq!((total.total(), total.events), (Usage::new(1, 2), 1));
}

#[test]
fn s002_12_the_command_compacts() {
    let mut bench = talked();
    let reported = compactions(&events(&mut bench.session, "/compact"));
    assert!(matches!(reported.last(), Some(CompactionEvent::Completed { .. })), "{reported:?}");
}

#[test]
fn s002_13_the_command_is_not_sent() {
    let mut bench = talked();
    let asked = bench.model.requests().len();
    say(&mut bench.session, "/compact").unwrap();
    assert_eq!(bench.model.requests().len(), asked);
    let texts = serde_json::to_string(bench.session.messages()).unwrap();
    assert!(!texts.contains("/compact"));
}

#[test]
fn s002_15_a_line_for_the_user_says_that_it_was_compacted() {
    let mut bench = talked();
    say(&mut bench.session, "/compact").unwrap();
    let notice = bench.session.log().events().iter().find_map(|logged| match &logged.event {
        Event::LocalNotice { text } => Some(text.to_string()),
        _ => None,
    });
    assert!(notice.unwrap().starts_with("Compacted: 8 to 2 messages"));
}

#[test]
fn s002_16_the_end_is_an_event() {
    let mut bench = talked();
    let reported = compactions(&events(&mut bench.session, "/compact"));
    assert_eq!(reported.iter().filter(|event| event.is_end()).count(), 1);
    assert!(reported.last().unwrap().is_end());
}

#[test]
fn s002_18_what_is_no_command_is_an_ordinary_message() {
    let mut bench = talked();
    say(&mut bench.session, "/compaction is what?").unwrap();
    assert!(bench.last_sent().contains("/compaction is what?"));
}

#[test]
fn s002_25_an_empty_thread_is_handled() {
    let mut bench = bench(Vec::<Scripted>::new(), |builder| builder);
    let said = events(&mut bench.session, "/compact");
    assert!(matches!(said.last(), Some(Ok(SessionEvent::Notice { .. }))), "{said:?}");
}

#[test]
fn s002_28_another_interface_implements_the_display() {
    struct Lines(Vec<String>);
    impl CompactionDisplay for Lines {
        fn on_start(&mut self, strategy: &str, _: &CompactionReason) {
            self.0.push(format!("starts {strategy}"));
        }
        fn on_complete(&mut self, report: &CompactReport) {
            self.0.push(format!("ends with {}", report.after.messages));
        }
        fn on_error(&mut self, error: &str) {
            self.0.push(error.to_owned());
        }
    }
    let mut lines = Lines(Vec::new());
    let mut bench = talked();
    compactions(&events(&mut bench.session, "/compact")).iter().for_each(|event| lines.show(event));
    assert_eq!(lines.0, ["starts keep-recent", "ends with 2"]);
}

#[test]
fn s002_33_ordinary_messages_make_no_compaction_event() {
    let mut bench = bench(["Hello!"], |builder| builder);
    assert_eq!(compactions(&events(&mut bench.session, "Hi.")), []);
}

#[test]
fn s002_34_the_record_of_a_compaction_has_its_numbers() {
    let mut bench = talked();
    say(&mut bench.session, "/compact").unwrap();
    let record = bench.session.log().standing().next().unwrap();
    let report = &record.report;
    assert_eq!(record.strategy, "keep-recent");
    assert_eq!((report.before.messages, report.after.messages), (8, 2));
    assert_eq!((report.summary_bytes, report.user_messages_preserved), (0, 1));
    assert!(report.tokens_saved() > 0 && !record.plan.is_empty());
}

#[test]
fn s002_36_the_system_prompt_survives() {
    let keep = KeepRecent { messages: 2, ..KeepRecent::default() };
    let mut bench =
        bench(["One.", "Two.", "Three."], |b| b.system("Be kind.").strategy(Arc::new(keep)));
    for text in ["First?", "Second?", "/compact", "Third?"] {
        say(&mut bench.session, text).unwrap();
    }
    assert_eq!(bench.last_request().system[0], Message::system("Be kind."));
}

#[test]
fn s002_41_without_a_model_a_summary_needs_one() {
    let error = StrategyError::NeedsModel.to_string();
    assert_eq!(error, "this strategy needs a model, but none is configured");
}

#[test]
fn s002_44_both_strategies_are_registered() {
    let registry = StrategyRegistry::default();
    assert!(registry.get("trim-tool-results").is_ok() && registry.get("ai-summarize").is_ok());
}

#[test]
fn s002_45_a_host_registers_its_own() {
    #[derive(Debug)]
    struct Own;
    #[threadfold::async_trait]
    impl threadfold::CompactionStrategy for Own {
        fn name(&self) -> &str {
            "own"
        }
        async fn propose(
            &self,
            view: &threadfold::strategy::View,
            ask: &mut threadfold::strategy::Ask<'_>,
        ) -> Result<threadfold::strategy::Proposal, threadfold::strategy::StrategyError> {
            KeepRecent::default().propose(view, ask).await
        }
    }
    let mut registry = StrategyRegistry::default();
    registry.register(Arc::new(Own)).unwrap();
    assert_eq!(registry.get("own").unwrap().name(), "own");
}

#[test]
fn s002_49_a_strategy_is_chosen_by_its_name() {
    let mut bench = talked();
    bench.session.set_strategy_named("trim-tool-results").unwrap();
    let registry = StrategyRegistry::default();
    let keep = registry.build(&json!({"keep-recent": {"messages": 4}})).unwrap();
    block_on(bench.session.compact_with(keep, None).into_future()).unwrap();
    assert_eq!(bench.session.messages().len(), 4);
}

#[test]
fn s002_50_the_log_has_an_event_with_the_strategy() {
    let mut bench = talked();
    say(&mut bench.session, "/compact").unwrap();
    let strategies = bench.session.log().events().iter().filter_map(|logged| match &logged.event {
        Event::Compacted(record) => Some(record.strategy.to_string()),
        _ => None,
    });
    assert_eq!(strategies.collect::<Vec<_>>(), ["keep-recent"]);
}

#[test]
fn s002_51_an_unknown_strategy_is_an_error_with_the_known_ones() {
    let error = StrategyRegistry::default().get("magic").unwrap_err().to_string();
    assert!(error.contains("magic") && error.contains("summarize"), "{error}");
}

#[test]
fn s002_52_automatic_compaction_is_on_by_default() {
    assert!(AutoPolicy::default().enabled);
}

#[test]
fn s002_53_it_starts_at_80_percent() {
    let policy = serde_json::to_value(AutoPolicy::default()).unwrap();
    assert_eq!(policy["threshold"], json!({"fraction": 0.8}));
}

#[test]
fn s002_58_the_budget_goes_on_from_what_is_left() {
    let mut budget = TokenBudget::for_window(ContextWindow::new(10_000));
    budget.record(Usage::new(8_000, 500));
    budget.after_compaction(Timestamp(9), Usage::new(300, 0));
    assert!(!budget.should_prune());
    budget.reset();
    assert_eq!(budget.used, Usage::default());
}

#[test]
fn s002_60_a_budget_has_limits_and_recommends() {
    let limits = json!({"max_tokens": 12000, "reserve_tokens": 1000, "warning_threshold": 0.7});
    let mut budget: TokenBudget = serde_json::from_value(limits).unwrap();
    assert!(!budget.should_prune());
    budget.record(Usage::new(9_000, 2_000));
    assert!(budget.should_prune() && budget.warning().is_some());
}

fn shares(context: u64) -> api::TokenUsageSummary {
    let billed = total_usage(log_of(&[Some(Usage::new(100, 50))]).events());
    api::TokenUsageSummary::new(billed, context, Some(ContextWindow::new(1_000)))
}

#[test]
fn s002_63_a_page_gets_five_numbers() {
    let json = serde_json::to_value(shares(150)).unwrap();
    for field in
        ["totalPromptTokens", "totalCompletionTokens", "totalTokens", "percentUsed", "nearLimit"]
    {
        assert!(!json[field].is_null(), "{field}: {json}");
    }
}

#[test]
fn s002_64_the_share_is_in_percent() {
    assert_eq!(shares(275).percent_used, 27.5);
}

#[test]
fn s002_65_above_80_percent_the_limit_is_near() {
    assert!(!shares(800).near_limit && shares(801).near_limit);
}

#[test]
fn s002_66_the_start_is_sent_to_a_page() {
    let (id, thread) = (CompactionId(0), "main".parse().unwrap());
    let started = CompactionEvent::Started {
        id,
        thread,
        at: Timestamp(0),
        reason: CompactionReason::Threshold,
        strategy: "summarize".into(),
    };
    let sent = api::compaction_event(&started).unwrap().to_value().unwrap();
    assert_eq!((&sent["type"], &sent["threadId"]), (&json!("COMPACTION_START"), &json!("main")));
    assert_eq!(sent["data"]["strategy"], "summarize");
    assert!(sent["timestamp"].is_string());
}

#[test]
fn s002_67_the_end_is_sent_with_the_saved_tokens() {
    let mut bench = talked();
    let reported = compactions(&events(&mut bench.session, "/compact"));
    let sent = api::compaction_event(reported.last().unwrap()).unwrap().to_value().unwrap();
    assert_eq!(sent["type"], "COMPACTION_COMPLETE");
    assert!(sent["data"]["tokensSaved"].as_i64().unwrap() > 0, "{sent}");
}

#[test]
fn s002_68_the_conversation_continues_after_the_command() {
    let mut bench = talked();
    say(&mut bench.session, "/compact").unwrap();
    assert!(say(&mut bench.session, "And now?").unwrap().text.starts_with("Five."));
}

#[test]
fn s002_69_the_originals_stay_readable() {
    let mut bench = talked();
    say(&mut bench.session, "/compact").unwrap();
    let all = bench.session.log().originals().count();
    assert_eq!((all, bench.session.messages().len()), (8, 2));
}

#[test]
fn s002_30_the_console_says_what_was_reduced() {
    let mut report = CompactReport::default();
    report.before = Size { messages: 40, ..Size::default() };
    report.after = Size { messages: 9, ..Size::default() };
    let mut written = Vec::new();
    console(&mut written).on_complete(&report);
    let line = String::from_utf8(written).unwrap();
    let expected = "Compaction complete! Reduced from 40 to 9 events (78% reduction)\n";
    assert!(line.ends_with(expected), "{line}");
}

#[test]
fn s002_31_the_console_says_why_it_failed() {
    let mut written = Vec::new();
    console(&mut written).on_error("no model");
    assert!(String::from_utf8(written).unwrap().ends_with("Compaction failed: no model\n"));
}

#[test]
fn s002_29_the_console_says_that_it_begins() {
    let mut written = Vec::new();
    console(&mut written).on_start("summarize", &CompactionReason::Threshold);
    let line = String::from_utf8(written).unwrap();
    assert!(line.ends_with("Compacting conversation to reduce size...\n"), "{line}");
}

#[test]
fn s002_39_a_question_and_its_answer_can_be_summarised() {
    let model = ScriptedModel::new(["A long answer about calculators. ".repeat(20), "A.".into()]);
    let strategy = Arc::new(Summarize { user_messages: 0, ..Summarize::default() });
    let mut session =
        Session::builder(ModelAgent::new(Arc::new(model))).strategy(strategy).build().unwrap();
    say(&mut session, "Build a calculator.").unwrap();
    say(&mut session, "/compact").unwrap();
    assert!(session.messages().iter().any(Message::is_summary));
}
