//! The events of a session.

use serde::{Deserialize, Serialize};

use crate::{
    auto::Output,
    compaction::CompactionEvent,
    message::{Author, ContentBlock, StopReason, Text, Usage},
};

/// One event of a session's work. Events come in the order in which they happen.
///
/// Its JSON is an object with a `type` and the fields of the event in snake case; times are
/// milliseconds since the Unix epoch. A compaction has the type `compaction`, and the fields of its
/// [`CompactionEvent`], `status` first, are beside the type. `testdata/events/session.jsonl` has
/// a line for each event; existing lines never change, except that fields may be added.
///
/// Unknown fields are ignored. An unknown type, status or reason is an error that names it. A
/// reader can skip such an event of a newer version, because no event depends on an earlier one.
///
/// ```
/// use threadfold::session::SessionEvent;
///
/// let event = SessionEvent::TextDelta { text: "Hello".into() };
/// let line = r#"{"type":"text_delta","text":"Hello"}"#;
/// assert_eq!(serde_json::to_string(&event)?, line);
/// let newer = serde_json::from_str::<SessionEvent>(r#"{"type":"audio_delta","text":"Hello"}"#);
/// assert!(newer.unwrap_err().to_string().starts_with("unknown variant `audio_delta`"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum SessionEvent {
    /// A piece of the answer.
    TextDelta {
        /// The piece.
        text: Text,
    },
    /// A piece of the model's reasoning.
    ThinkingDelta {
        /// The piece.
        text: Text,
    },
    /// A piece of the input of a tool call that the model is writing. The first piece of a call is
    /// empty. Providers that do not stream inputs cause no such event;
    /// [`ToolStarted`](Self::ToolStarted) has the whole input.
    ToolInputDelta {
        /// The id of the call.
        id: Text,
        /// The name of the tool.
        name: Text,
        /// The piece, as JSON text.
        text: Text,
    },
    /// A tool call starts.
    ToolStarted {
        /// The id of the call.
        id: Text,
        /// The name of the tool.
        name: Text,
        /// The input of the call, as the JSON text that the model wrote.
        input: Text,
    },
    /// A tool call has its result.
    ToolFinished {
        /// The id of the call.
        id: Text,
        /// The name of the tool.
        name: Text,
        /// Whether the call failed.
        is_error: bool,
        /// The whole result, even if the thread holds it shortened to
        /// [`max_tool_result`](super::SessionBuilder::max_tool_result).
        content: Vec<ContentBlock>,
    },
    /// The host must discard the text streamed for this answer so far. Either the window cut the
    /// answer off or the provider refused the request midway, and the model is asked again; or the
    /// whole answer differs from its stream, and its text follows.
    AnswerDiscarded,
    /// A compaction started, progressed or ended.
    Compaction(CompactionEvent),
    /// A requested compaction found nothing to compact, so none started.
    NothingCompacted {
        /// The reason, in one line.
        why: Text,
    },
    /// A line for the user. It is never sent to a model.
    Notice {
        /// The line.
        text: Text,
    },
    /// A queued message starts a turn of its own. If the turn is cancelled before the message is in
    /// the thread, the message waits again, and this event comes again with the next turn.
    QueuedMessage {
        /// Its text.
        text: Text,
        /// Who typed it, if the host names the people of the thread.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        author: Option<Author>,
    },
    /// A turn ended.
    TurnEnded {
        /// Why the model stopped.
        stop_reason: StopReason,
        /// Model answers in this turn.
        rounds: u32,
        /// Whether the session stopped the turn before the model was done: at [the maximum of
        /// rounds](super::SessionBuilder::max_rounds), or after the same calls failed with the same
        /// errors three times in a row. Calls that were not executed have an error result.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        capped: bool,
        /// Token usage of these answers together.
        usage: Usage,
    },
    /// The host aborted the turn. This is the last event.
    Aborted,
}

/// Returns the text of the trigger's notice for the user, if it has one.
pub(super) fn notice_line(output: &Output) -> Option<String> {
    Some(match output {
        Output::Suspended { tokens, threshold } => format!(
            "Automatic compaction rests: it does not bring {tokens} tokens under {threshold}."
        ),
        Output::Paused { failures, until } => {
            format!("Automatic compaction rests until {until}, after {failures} failures in a row.")
        }
        Output::UnknownWindow => "The window of this model is not known, so nothing is compacted ahead \
            of need until the provider refuses a request. Name it with Session::builder(..).window(..)."
            .to_owned(),
        Output::ShortAnswer { tokens, output, window } => format!(
            "The answer may be cut short: about {tokens} tokens of the window of {window} are in use, \
             and {output} were to be kept for the answer."
        ),
        Output::Compact { .. }
        | Output::SendAgain
        | Output::TakeBack
        | Output::CannotFit { .. } => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;
    use crate::{
        Message,
        compact::{CompactReport, Size},
        log::Rung,
        message::{CompactionId, CompactionReason, ThreadId, Timestamp},
        retention::{Facts, Retention, RetentionPolicy},
    };

    /// Gives the names of all variants, and the name of a value. A variant that is not listed does
    /// not compile.
    macro_rules! variants {
        ($names:ident, $name:ident, $event:ident: $($variant:ident)*) => {
            const $names: &[&str] = &[$(stringify!($variant)),*];

            fn $name(event: &$event) -> &'static str {
                match event {
                    $($event::$variant { .. } => stringify!($variant),)*
                }
            }
        };
    }

    variants!(SESSION, session_name, SessionEvent: TextDelta ThinkingDelta
        ToolInputDelta ToolStarted ToolFinished AnswerDiscarded Compaction NothingCompacted Notice QueuedMessage TurnEnded Aborted);
    variants!(COMPACTION, compaction_name, CompactionEvent: Started Progress SummaryDelta Completed
        Failed Cancelled);
    variants!(REASON, reason_name, CompactionReason: Threshold Overflow Manual AgentTool ModelSwitch
        Background Idle);

    const AT: Timestamp = Timestamp(1_754_640_000_123);

    fn reasons() -> Vec<CompactionReason> {
        vec![
            CompactionReason::Threshold,
            CompactionReason::Overflow,
            CompactionReason::Manual { instructions: None },
            CompactionReason::Manual { instructions: Some("the \"parser\"".into()) },
            CompactionReason::AgentTool,
            CompactionReason::ModelSwitch,
            CompactionReason::Background,
            CompactionReason::Idle,
        ]
    }

    fn retention() -> Retention {
        let said = [Message::user("Fix src/parse.rs. Never touch the lexer.")];
        let facts = Facts::of(&said, &RetentionPolicy::default());
        facts.audit(&[Message::assistant("src/parse.rs is fixed.")])
    }

    /// A value of each line of `testdata/events/compaction.jsonl`, in order.
    fn compactions() -> Vec<CompactionEvent> {
        let (id, at) = (CompactionId(3), AT);
        let thread: ThreadId = "thread-1".parse().unwrap();
        let mut report = CompactReport::default();
        report.before = Size { messages: 40, bytes: 81_920, tokens: 20_500 };
        report.after = Size { messages: 9, bytes: 8_192, tokens: 2_100 };
        (report.summary_bytes, report.user_messages_preserved) = (2_048, 2);
        report.blocks_stripped = 5;
        let usage = Usage {
            cache_read: 18_000,
            cache_write: 500,
            reasoning: 64,
            ..Usage::new(21_000, 512)
        };
        let mut failed = Rung::new("summarize");
        (failed.failure, failed.usage, failed.calls) = (Some("no model".into()), usage, 1);
        let completed = |rungs, retention: Option<Retention>| {
            let (thread, mut report) = (thread.clone(), report.clone());
            report.retention = retention.map(Box::new);
            CompactionEvent::Completed { id, thread, at, report, usage, rungs }
        };
        let mut noted = report.clone();
        noted.notes = vec!["summarised without a model: chunk 2 of 4 (no model)".into()];
        let mut events: Vec<CompactionEvent> = Vec::new();
        events.extend(reasons().into_iter().map(|reason| CompactionEvent::Started {
            id,
            thread: thread.clone(),
            at,
            reason,
            strategy: "summarize".into(),
        }));
        events.extend([
            CompactionEvent::Progress { id, done: 1, total: 4 },
            CompactionEvent::SummaryDelta { id, text: "The user\nasked".into() },
            completed(Vec::new(), None),
            completed(vec![failed, Rung::new("digest")], Some(retention())),
            CompactionEvent::Completed {
                id,
                thread: thread.clone(),
                at,
                report: noted,
                usage,
                rungs: Vec::new(),
            },
            CompactionEvent::Failed { id, thread: thread.clone(), at, error: "no model".into() },
            CompactionEvent::Cancelled { id, thread, at },
        ]);
        events
    }

    /// A value of each line of `testdata/events/session.jsonl`, in order.
    fn events() -> Vec<SessionEvent> {
        let (id, name) = (Text::from("call-1"), Text::from("read"));
        let input = Text::from(r#"{"path":"src/parse.rs"}"#);
        let finished = |is_error, content| {
            let (id, name) = (id.clone(), name.clone());
            SessionEvent::ToolFinished { id, name, is_error, content }
        };
        let ended = |stop_reason: &str, capped| SessionEvent::TurnEnded {
            stop_reason: stop_reason.into(),
            rounds: 2,
            capped,
            usage: Usage::new(1_000, 50),
        };
        let mut events = vec![
            SessionEvent::TextDelta { text: "Hello".into() },
            SessionEvent::ThinkingDelta { text: "Hm".into() },
            SessionEvent::ToolInputDelta { id: id.clone(), name: name.clone(), text: "{".into() },
            SessionEvent::ToolStarted { id: id.clone(), name: name.clone(), input },
            finished(false, vec![ContentBlock::text("a line")]),
            finished(true, Vec::new()),
            SessionEvent::AnswerDiscarded,
            SessionEvent::NothingCompacted { why: "there is nothing to compact yet".into() },
            SessionEvent::Notice { text: "Compacted.".into() },
            SessionEvent::QueuedMessage { text: "And then?".into(), author: None },
            ended("end_turn", false),
            ended("tired", false),
            ended("tool_use", true),
            SessionEvent::Aborted,
        ];
        events.extend(compactions().into_iter().map(SessionEvent::Compaction));
        events
    }

    fn assert_lines<E>(events: &[E], lines: &str)
    where
        E: fmt::Debug + PartialEq + Serialize + serde::de::DeserializeOwned,
    {
        let written: Vec<_> =
            events.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
        assert_eq!(written, lines.lines().collect::<Vec<_>>());
        for (event, line) in events.iter().zip(lines.lines()) {
            assert_eq!(serde_json::from_str::<E>(line).unwrap(), *event);
        }
    }

    fn assert_all<E>(names: &[&str], name: impl Fn(&E) -> &'static str, values: &[E]) {
        let found: Vec<_> = values.iter().map(name).collect();
        let missing: Vec<_> = names.iter().filter(|name| !found.contains(name)).collect();
        assert!(missing.is_empty(), "there is no line of {missing:?}");
    }

    #[test]
    fn every_event_has_the_json_that_its_line_says() {
        assert_all(SESSION, session_name, &events());
        assert_lines(&events(), include_str!("../../testdata/events/session.jsonl"));
    }

    #[test]
    fn every_compaction_event_has_the_json_that_its_line_says() {
        assert_all(REASON, reason_name, &reasons());
        assert_all(COMPACTION, compaction_name, &compactions());
        assert_lines(&compactions(), include_str!("../../testdata/events/compaction.jsonl"));
    }

    #[test]
    fn a_fallback_is_what_has_no_failure_wherever_it_stands() {
        let rung = |strategy: &str, failed: bool| {
            let mut rung = Rung::new(strategy);
            rung.failure = failed.then(|| "too little".into());
            rung
        };
        let rows = [
            (vec![], None),
            (vec![("a", false)], None),
            (vec![("a", true), ("b", false)], Some(("b", 1))),
            (vec![("a", false), ("b", true)], None),
            (vec![("a", true), ("b", false), ("c", true)], Some(("b", 1))),
        ];
        for (tried, fallback) in rows {
            let mut events = compactions().into_iter();
            let Some(mut event) = events.find(|event| compaction_name(event) == "Completed") else {
                panic!("there is none")
            };
            let CompactionEvent::Completed { rungs, .. } = &mut event else { panic!("{event:?}") };
            *rungs = tried.iter().map(|(strategy, failed)| rung(strategy, *failed)).collect();
            let found =
                event.fallback().map(|(used, failed)| (used.strategy.as_str(), failed.len()));
            assert_eq!(found, fallback, "{tried:?}");
        }
    }

    #[test]
    fn the_kind_of_a_reason_is_the_type_of_its_json() {
        for reason in reasons() {
            let json = serde_json::to_value(&reason).unwrap();
            assert_eq!(json["type"], reason.as_str());
        }
    }

    #[test]
    fn what_a_newer_version_wrote_is_named_or_passed_over() {
        let unknown = [
            (r#"{"type":"audio_delta","text":"x"}"#, "audio_delta"),
            (r#"{"type":"compaction","status":"paused","id":1}"#, "paused"),
            (
                r#"{"type":"compaction","status":"started","id":1,"thread":"t","at":1,"reason":{"type":"moon"},"strategy":"s"}"#,
                "moon",
            ),
        ];
        for (line, name) in unknown {
            let error = serde_json::from_str::<SessionEvent>(line).unwrap_err().to_string();
            assert!(error.contains(&format!("unknown variant `{name}`")), "{error}");
        }
        let more = r#"{"status":"progress","id":3,"done":1,"total":4,"eta":9,"type":"compaction"}"#;
        let event = CompactionEvent::Progress { id: CompactionId(3), done: 1, total: 4 };
        assert_eq!(
            serde_json::from_str::<SessionEvent>(more).unwrap(),
            SessionEvent::Compaction(event)
        );
    }
}
