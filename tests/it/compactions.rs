//! Whole compactions: thread, log and store together.
//!
//! The tests look at the requests that the model received and at what was stored.

use std::sync::{Arc, Mutex};

use futures::{StreamExt, executor::block_on, stream::BoxStream};
use threadfold::{
    Answer, CompactionStrategy, ContentBlock, ContextWindow, Message, Model, Request,
    StrategyRegistry, Usage, async_trait,
    drive::{self, CompactionError, Conversation, Models},
    legality,
    log::{CompactionFailure, CompactionRecord, Event, Rung},
    message::{CompactionId, CompactionReason, Delta, Json, ModelErrorKind, Timestamp},
    model::ModelError,
    store::{Journal, MemoryStore, ThreadStore},
    strategy::{Brief, Chunked, Digest, KeepRecent, Ladder, Rolling, Summarize, TrimToolResults},
    testing::{ExtractiveModel, Scripted, ScriptedModel},
};
use threadfold_testing::{TestClock, notation};

const RAW: &str = "zebra stripes matter here";
/// The text in a request. No summary repeats one of its lines.
const RAW_LINES: &str = r"a line about zebras\na line about zebras";
const THREAD: &str = "thread-1";

/// A thread with its log and store.
struct Kept {
    journal: Journal,
    store: Arc<MemoryStore>,
    now: u64,
}

impl Kept {
    fn new() -> Self {
        let store = Arc::new(MemoryStore::default());
        let journal = Journal::open(store.clone(), THREAD.parse().unwrap());
        Self { journal: block_on(journal).unwrap(), store, now: 1_000 }
    }

    /// A conversation of some rounds; its first message holds text that no summary repeats.
    fn begun() -> Self {
        let mut kept = Self::new();
        kept.say("# user\nRead the animals.\n");
        kept.say(&format!(
            "# assistant\n{RAW}, and I look them up.\n[tool_use z read] {{\"path\":\"zebra.md\"}}\n\
             # user\n[tool_result z] {RAW}: {}\n# assistant\nRead.\n",
            "a line about zebras\n".repeat(30)
        ));
        kept.rounds(0..12);
        kept
    }

    fn rounds(&mut self, numbers: std::ops::Range<usize>) {
        for number in numbers {
            self.say(&format!(
                "# user\nGo on with part {number}.\n\
                 # assistant\nI look at part {number}, which takes some words to say.\n\
                 [tool_use t{number} read] {{\"path\":\"src/part_{number}.rs\"}}\n\
                 # user\n[tool_result t{number}] fn part_{number}() {{}}\n{}\n\
                 # assistant\nPart {number} is done.\n",
                "// a line of the body of this part\n".repeat(12)
            ));
        }
    }

    fn say(&mut self, text: &str) {
        for message in notation::parse(text).unwrap() {
            self.now += 1_000;
            let event = Event::MessageAppended(message);
            self.journal.append(Timestamp(self.now), event).unwrap();
        }
        block_on(self.journal.flush()).unwrap();
    }

    fn compact(
        &mut self,
        strategy: &dyn CompactionStrategy,
        models: Models<'_>,
    ) -> Result<CompactionRecord, CompactionError> {
        self.now += 1_000;
        let brief = Brief {
            now: Timestamp(self.now),
            reason: CompactionReason::Threshold,
            ..Brief::default()
        };
        let mut conversation =
            Conversation::new(&mut self.journal).with_window(Some(ContextWindow::new(100_000)));
        let clock = TestClock::default();
        let models = Models { clock: Some(&clock), ..models };
        block_on(drive::compact(&mut conversation, strategy, &brief, models, &mut |_, _| {}))
    }

    fn messages(&self) -> Vec<Message> {
        self.journal.thread().messages().to_vec()
    }

    /// The stored events, as lines.
    fn stored(&self) -> Vec<u8> {
        let stored = block_on(self.store.load(&THREAD.parse().unwrap())).unwrap().log;
        let mut bytes = Vec::new();
        stored.write(&mut bytes).unwrap();
        bytes
    }

    fn batches(&self) -> usize {
        block_on(self.journal.whole()).unwrap().batches().unwrap().len()
    }

    /// Checks that thread, log and store hold the same messages.
    fn assert_whole(&self) {
        assert_eq!(self.journal.log().replay(), self.messages());
        let stored = block_on(self.store.load(&THREAD.parse().unwrap())).unwrap().log;
        assert_eq!(stored, *block_on(self.journal.whole()).unwrap());
        assert_eq!(legality::violations(&self.messages()), []);
    }
}

/// A model that records its requests.
#[derive(Debug)]
struct Recorded<M> {
    model: M,
    requests: Mutex<Vec<Request>>,
}

impl<M> Recorded<M> {
    fn new(model: M) -> Self {
        Self { model, requests: Mutex::default() }
    }

    /// All requests so far, as one text.
    fn take(&self) -> String {
        serde_json::to_string(&std::mem::take(&mut *self.requests.lock().unwrap())).unwrap()
    }
}

#[async_trait]
impl<M: Model> Model for Recorded<M> {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        self.requests.lock().unwrap().push(request.clone());
        self.model.complete(request).await
    }

    fn stream(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        self.requests.lock().unwrap().push(request.clone());
        self.model.stream(request).boxed()
    }
}

fn last_failure(kept: &Kept) -> CompactionFailure {
    match kept.journal.log().events().last().map(|event| &event.event) {
        Some(Event::CompactionFailed(failure)) => (**failure).clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_compaction_changes_thread_log_and_store_together() {
    let mut kept = Kept::begun();
    let before = kept.stored();
    let model = ScriptedModel::new(["All parts up to here were read."]);
    let done = kept.compact(&Summarize::default(), Models::one(&model)).unwrap();
    kept.assert_whole();
    let after = kept.stored();
    assert!(after.starts_with(&before), "earlier events are as they were");
    assert_eq!(after[before.len()..].iter().filter(|byte| **byte == b'\n').count(), 1);
    let record = kept.journal.log().compaction(done.id).unwrap();
    assert_eq!((record.report.clone(), record.usage), (done.report, done.usage));
    assert_eq!(record.report.after.messages, kept.messages().len());
}

#[test]
fn a_failure_adds_one_event_and_changes_nothing_else() {
    let strategies: [&dyn CompactionStrategy; 3] =
        [&Summarize::default(), &Rolling::default(), &Chunked::default()];
    for strategy in strategies {
        for way in Scripted::misbehaving() {
            // A slow answer is an answer.
            if matches!(way, Scripted::Slow(_)) {
                continue;
            }
            // A chunked run may turn the few edits of such a model into a summary, or cut it.
            let model = ScriptedModel::repeating([way.clone()]);
            let mut kept = Kept::begun();
            let (thread, stored) = (kept.messages(), kept.stored());
            let failed = kept.compact(strategy, Models::one(&model));
            let what = format!("{} when the model {way:?}", strategy.name());
            let failed = failed.unwrap_err();
            assert!(failed.strategy().is_some(), "{what}: {failed:?}");
            assert_eq!(kept.messages(), thread, "{what}");
            assert!(kept.messages().iter().zip(&thread).all(|(a, b)| a.ptr_eq(b)), "{what}");
            let after = kept.stored();
            assert!(after.starts_with(&stored), "{what}");
            let lines = after[stored.len()..].iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(lines, 1, "{what}");
            assert_eq!(kept.batches(), 0, "{what}");
            let failure = last_failure(&kept);
            assert_eq!(failure.error.as_str(), failed.to_string(), "{what}");
            assert_eq!(failure.usage, failed.usage, "{what}");
            kept.assert_whole();
        }
    }
}

#[test]
fn if_all_rungs_fail_the_record_has_the_error_and_usage_of_each() {
    let mut kept = Kept::begun();
    let (thread, stored) = (kept.messages(), kept.stored());
    let blank = Answer::new(
        Message::assistant(" "),
        threadfold::message::StopReason::EndTurn,
        Some(Usage::new(900, 2)),
    );
    let model = ScriptedModel::new([
        Scripted::Answer(blank),
        Scripted::Error(ModelError::new(ModelErrorKind::Other, "the lamp is out")),
    ]);
    let patient = KeepRecent { messages: 9_999, ..KeepRecent::default() };
    let text = Summarize { messages: 4, ..Summarize::default() };
    let ladder = Ladder::new([
        Arc::new(Summarize::default()) as Arc<dyn CompactionStrategy>,
        Arc::new(text),
        Arc::new(patient),
    ]);
    let failed = kept.compact(&ladder, Models::one(&model)).unwrap_err();
    assert_eq!((kept.messages(), kept.stored().starts_with(&stored)), (thread, true));
    let failure = last_failure(&kept);
    assert_eq!(failure.error.as_str(), failed.to_string());
    assert_eq!(failure.usage, Usage::new(900, 2));
    let rungs: Vec<(&str, Usage, usize)> =
        failure.rungs.iter().map(|rung| (rung.strategy.as_str(), rung.usage, rung.calls)).collect();
    let none = Usage::default();
    assert_eq!(
        rungs,
        [("summarize", Usage::new(900, 2), 1), ("summarize", none, 1), ("keep-recent", none, 0)]
    );
    let said = |rung: &Rung| rung.failure.as_ref().unwrap().to_string();
    assert_eq!(said(&failure.rungs[1]), "the model call failed: the lamp is out");
    kept.assert_whole();
}

#[test]
fn the_record_of_a_ladder_names_the_successful_rung() {
    let mut kept = Kept::begun();
    let model = ScriptedModel::repeating([Scripted::Blank]);
    let ladder = Ladder::default();
    let done = kept.compact(&ladder, Models::one(&model)).unwrap();
    let record = kept.journal.log().compaction(done.id).unwrap();
    let rungs: Vec<(&str, bool)> =
        record.rungs.iter().map(|rung| (rung.strategy.as_str(), rung.failure.is_none())).collect();
    assert_eq!(rungs.first(), Some(&("summarize", false)));
    assert_eq!(rungs.last().map(|rung| rung.1), Some(true));
    kept.assert_whole();
}

#[test]
fn later_compactions_see_the_summary_and_never_the_raw_originals() {
    let strategies: [Arc<dyn CompactionStrategy>; 4] = [
        Arc::new(Summarize { user_messages: 0, ..Summarize::default() }),
        Arc::new(Chunked::default()),
        Arc::new(Rolling::default()),
        Arc::new(Digest::default()),
    ];
    for strategy in strategies {
        let model = Recorded::new(ExtractiveModel);
        let mut kept = Kept::begun();
        let mut rounds = 100..112;
        kept.compact(strategy.as_ref(), Models::one(&model)).unwrap();
        let name = strategy.name();
        if name != "digest" {
            assert!(
                model.take().contains("a line about zebras"),
                "{name}: the first sees the raw text"
            );
        }
        for _ in 0..2 {
            let summaries = summaries(&kept.messages());
            kept.rounds(rounds.clone());
            rounds = rounds.start + 100..rounds.end + 100;
            kept.compact(strategy.as_ref(), Models::one(&model)).unwrap();
            let asked = model.take();
            assert!(!asked.contains(RAW_LINES), "{name}: raw text came again");
            for summary in summaries.iter().filter(|_| name != "digest") {
                // The headings of batches are not prose.
                let prose = summary.lines().filter(|line| !line.starts_with('['));
                let line = prose.max_by_key(|line| line.len()).unwrap();
                assert!(asked.contains(line), "{name}: {line:?} of the summary was not sent");
            }
            kept.assert_whole();
            assert_no_copies(name, &kept.messages());
        }
    }
}

/// The texts of the summaries in a thread.
fn summaries(messages: &[Message]) -> Vec<String> {
    let blocks = messages.iter().flat_map(|message| &message.content);
    let text = |block: &ContentBlock| {
        if let ContentBlock::Summary(summary) = block {
            Some(summary.text.to_string())
        } else {
            None
        }
    };
    blocks.filter_map(text).collect()
}

/// Checks that the next request does not contain a long line of a summary twice.
fn assert_no_copies(name: &str, messages: &[Message]) {
    let texts = summaries(messages);
    for line in texts.iter().flat_map(|text| text.lines()).filter(|line| line.len() >= 60) {
        let copies: usize = texts.iter().map(|text| text.matches(line).count()).sum();
        assert_eq!(copies, 1, "{name}: {line:?} in {texts:#?}");
    }
}

#[test]
fn undoing_a_compaction_keeps_the_later_messages() {
    for name in StrategyRegistry::default().names() {
        let registry = StrategyRegistry::default();
        let mut kept = Kept::begun();
        let before = kept.messages();
        let strategy = registry.get(name).unwrap();
        let done = kept.compact(strategy.as_ref(), Models::one(&ExtractiveModel)).unwrap();
        kept.rounds(50..52);
        let since = kept.messages()[done.report.after.messages..].to_vec();
        let _ = kept.journal.undo(Timestamp(kept.now), done.id).unwrap();
        block_on(kept.journal.flush()).unwrap();
        assert_eq!(kept.messages(), [before, since].concat(), "{name}");
        assert_eq!(kept.batches(), 0, "{name}: batches of an undone compaction are not listed");
        kept.assert_whole();
    }
}

#[test]
fn the_number_of_a_failed_compaction_is_never_reused() {
    let mut kept = Kept::begun();
    let fails = ScriptedModel::repeating([Scripted::Fails]);
    kept.compact(&Summarize::default(), Models::one(&fails)).unwrap_err();
    let done = kept.compact(&Summarize::default(), Models::one(&ExtractiveModel)).unwrap();
    assert_eq!(done.id, CompactionId(1));
}

#[test]
fn trimming_is_recorded_in_log_and_store() {
    let mut kept = Kept::begun();
    kept.compact(&TrimToolResults::default(), Models::default()).unwrap();
    kept.assert_whole();
    let stored = kept.stored();
    let again = kept.compact(&TrimToolResults::default(), Models::default()).unwrap_err();
    assert!(again.to_string().starts_with("nothing to compact"), "{again}");
    assert_eq!(kept.stored(), stored, "a compaction without an effect is not logged");
}

#[test]
fn only_messages_are_sent_and_no_other_events_of_the_log() {
    let mut kept = Kept::begun();
    let messages = kept.messages();
    let host = Event::Host { kind: "approval".into(), data: Json::parse("\"secret\"").unwrap() };
    for event in [
        Event::LocalNotice { text: "secret".into() },
        host,
        Event::SystemPromptSet { text: "secret".into(), by_user: true },
    ] {
        kept.journal.append(Timestamp(kept.now), event).unwrap();
    }
    let fails = ScriptedModel::repeating([Scripted::Fails]);
    kept.compact(&Summarize::default(), Models::one(&fails)).unwrap_err();
    assert_eq!(kept.journal.log().replay(), messages);
    let model = Recorded::new(ExtractiveModel);
    kept.compact(&Summarize::default(), Models::one(&model)).unwrap();
    assert!(!model.take().contains("secret"));
    kept.assert_whole();
}
