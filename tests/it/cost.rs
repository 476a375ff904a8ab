//! The cost and savings of compactions, measured with a simulated provider that has a prompt cache.

use futures::executor::block_on;
use threadfold::{
    EventLog, Message, Plan, TokenCounter, Usage,
    compact::{CompactReport, Insert, Prices, Size, Splice},
    drive::{self, Conversation, Models},
    log::{CompactionRecord, Event},
    message::{CompactionId, CompactionReason, Role, Summary, Timestamp},
    store::Journal,
    strategy::{Brief, KeepRecent},
    tokens::ByteEstimate,
};

const MINUTE: u64 = 60_000;

fn prices() -> Prices {
    let text = r#"{"input": 3, "cached": 0.3, "cache_write": 3.75, "output": 15,
        "cache_min": 300, "cache_block": 16}"#;
    serde_json::from_str(text).unwrap()
}

/// A provider that caches the prompt of the last request, and bills by comparing messages.
#[derive(Default)]
struct Provider {
    cached: Vec<Message>,
    used: Option<u64>,
    billed: Usage,
}

impl Provider {
    fn answer(&mut self, prompt: &[Message], at: u64) -> Message {
        let counter = ByteEstimate::TRIGGER;
        let is_warm = self.used.is_some_and(|used| at - used < prices().cache_life_ms);
        let same = self.cached.iter().zip(prompt).take_while(|(one, other)| one == other).count();
        let shared = if is_warm { counter.messages(&prompt[..same]) } else { 0 };
        let tokens = counter.messages(prompt);
        // Whole blocks of 16 tokens, from 300 tokens on.
        let blocks = |tokens: u64| if tokens / 16 * 16 < 300 { 0 } else { tokens / 16 * 16 };
        let cache_read = blocks(shared);
        let cache_write = blocks(tokens) - cache_read;
        let usage = Usage { cache_read, cache_write, ..Usage::new(tokens, 20) };
        (self.cached, self.used) = (prompt.to_vec(), Some(at));
        self.billed += usage;
        let mut answer = Message::assistant("It stands in the hall, beside the door.");
        answer.make_mut().usage = Some(usage);
        answer
    }
}

/// Asks 30 questions, the 20th after a long pause. If `compacts` is set, compacts before the 12th.
/// Returns the log, and the provider's bill from the 12th question on.
fn asked(compacts: bool) -> (EventLog, Usage) {
    let mut log = EventLog::new("main".parse().unwrap());
    let (mut provider, mut before, mut at) = (Provider::default(), Usage::default(), 0);
    for round in 0..30 {
        at += if round == 20 { 10 * MINUTE } else { MINUTE };
        if round == 12 {
            before = provider.billed;
        }
        if compacts && round == 12 {
            let thread = log.replay();
            let message = Message::summary(Role::User, Summary::new("They spoke of lamps."));
            let splice = Splice { at: 4..20, insert: vec![Insert::Message { message }] };
            let plan = Plan::from_splices(thread.len(), vec![splice]);
            let size = Size::of(&thread, &ByteEstimate::TRIGGER);
            let after = plan.after(&thread).unwrap();
            let mut record = CompactionRecord::new(
                CompactionId(0),
                CompactionReason::default(),
                "by-hand",
                plan.clone(),
            );
            record.report = CompactReport::new(size, &after, &plan, &ByteEstimate::TRIGGER);
            record.usage = Usage::new(900, 40);
            log.append(Timestamp(at), Event::Compacted(Box::new(record))).unwrap();
        }
        let question =
            Message::user(format!("Where is lamp {round}? {}", "Look well. ".repeat(20)));
        log.append(Timestamp(at), Event::MessageAppended(question)).unwrap();
        let answer = provider.answer(&log.replay(), at);
        log.append(Timestamp(at), Event::MessageAppended(answer)).unwrap();
    }
    let since = |all: u64, before: u64| all - before;
    let billed = Usage {
        input: since(provider.billed.input, before.input),
        output: since(provider.billed.output, before.output),
        cache_read: since(provider.billed.cache_read, before.cache_read),
        cache_write: since(provider.billed.cache_write, before.cache_write),
        reasoning: 0,
    };
    (log, billed)
}

#[test]
fn the_net_gain_equals_the_bill_of_the_provider_exactly() {
    let ((log, with), (_, without)) = (asked(true), asked(false));
    let gain = log.net_gain(CompactionId(0), &prices()).unwrap();
    assert_eq!((gain.answers, gain.reported, gain.otherwise), (18, with, without));
    let own = prices().bill(&Usage::new(900, 40));
    assert_eq!(gain.gain, prices().bill(&without) - prices().bill(&with) - own);
    assert_eq!(log.net_gain(CompactionId(1), &prices()), None);
}

/// The report of dropping the start of a thread, this many minutes after its last answer.
fn dropped(minutes: u64, prices: Option<Prices>) -> CompactReport {
    let mut journal = Journal::new(EventLog::new("main".parse().unwrap()));
    for round in 0..20 {
        let said = format!("{round} {}", "A word or two. ".repeat(30));
        for message in [Message::user(said.clone()), Message::assistant(said)] {
            journal.append(Timestamp(0), Event::MessageAppended(message)).unwrap();
        }
    }
    let system = vec![Message::system("Be brief. ".repeat(200))];
    let mut conversation = Conversation::new(&mut journal)
        .with_context(system.into(), vec![].into())
        .with_prices(prices);
    let brief = Brief { now: Timestamp(minutes * MINUTE), ..Brief::default() };
    let keep = KeepRecent { messages: 4, ..KeepRecent::default() };
    let models = Models::default();
    block_on(drive::compact(&mut conversation, &keep, &brief, models, &mut |_, _| {}))
        .unwrap()
        .report
}

#[test]
fn a_report_states_the_rebilled_tokens_and_when_the_compaction_has_paid_for_itself() {
    let report = dropped(1, Some(prices()));
    let cost = report.cost.unwrap();
    // The system prompt stays cached, but for the tokens that fill no block.
    let system = ByteEstimate::TRIGGER.messages(&[Message::system("Be brief. ".repeat(200))]);
    assert_eq!(cost.tokens_rebilled, report.after.tokens + system % 16);
    let saved = report.before.tokens - report.after.tokens;
    assert!(cost.saved_per_request.abs_diff(saved as i64 * 3 / 10) < 50, "{cost:?}");
    assert!(cost.pays_after.is_some_and(|requests| requests > 0), "{cost:?}");
    // With a cold cache the compaction pays at once, and all tokens are billed anew.
    let cold = dropped(9, Some(prices())).cost.unwrap();
    assert_eq!((cold.pays_after, cold.tokens_rebilled), (Some(1), report.after.tokens + system));
    assert_eq!(dropped(1, None).cost, None);
}
