//! What a compaction keeps of what the agent used afterwards: no less than the newest messages of
//! the same size, with and without a model, and no room is left unused while something is missing.

use std::sync::Arc;

use futures::executor::block_on;
use threadfold::{
    CompactionStrategy, Message, Request, TokenCounter,
    drive::{Models, propose},
    hindsight::Hindsight,
    legality,
    retention::RetentionPolicy,
    strategy::{Brief, Chunked, Digest, Ladder, Snapshot, Summarize},
    testing::ExtractiveModel,
    tokens::ByteEstimate,
};

use crate::support::{examples::threads, recorded};

const SHARES: [f64; 3] = [0.2, 0.3, 0.5];

/// The least share of a target that is used while something is missing, in percent.
const USED: u64 = 90;

/// The same where the user's words need most of a small target.
const USED_BESIDE_WORDS: u64 = 80;

/// A thread that is cut where its agent went on.
struct Case {
    name: String,
    messages: Vec<Message>,
    hindsight: Hindsight,
}

/// What is kept of one case: the share of the needed names, and the tokens used and asked for.
struct Kept {
    share: f64,
    used: u64,
    target: u64,
}

impl Case {
    fn of(thread: threads::Recorded) -> Option<Self> {
        let (messages, _) = legality::repair(thread.messages);
        let hindsight = Hindsight::of(&Request::new(messages.clone()), 0.75)?;
        Some(Self { name: thread.name, messages, hindsight })
    }

    fn share_of(&self, kept: &[Message]) -> f64 {
        let needed = self.hindsight.needed.len();
        (needed - self.hindsight.missing(kept).len()) as f64 / needed as f64
    }

    fn tail(&self, share: f64) -> f64 {
        let from = self.hindsight.newest(&self.messages, share);
        self.share_of(&self.messages[from..self.hindsight.cut])
    }

    /// `None` if the strategy cannot make the thread that small.
    fn kept(&self, strategy: &dyn CompactionStrategy, share: f64, asks: bool) -> Option<Kept> {
        let counter = ByteEstimate::TRIGGER;
        let past = &self.messages[..self.hindsight.cut];
        let (whole, head) =
            (counter.messages(past), counter.messages(&past[..self.hindsight.head]));
        let target = head + (share * (whole - head) as f64) as u64;
        let retention = Some(RetentionPolicy::default());
        let brief = Brief { target: Some(target), retention, ..Brief::default() };
        let models = if asks { Models::one(&ExtractiveModel) } else { Models::default() };
        let thread = Snapshot::new(past.to_vec());
        let proposal = block_on(propose(strategy, &thread, &brief, models, &mut |_, _| {})).ok()?;
        let after = proposal.plan.after(past).unwrap();
        Some(Kept { share: self.share_of(&after), used: counter.messages(&after), target })
    }
}

#[test]
fn a_compaction_keeps_no_less_of_what_is_needed_next_than_the_newest_messages() {
    let ways: [(&str, Arc<dyn CompactionStrategy>, bool); 5] = [
        ("digest", Arc::new(Digest::default()), false),
        ("ladder without a model", Arc::new(Ladder::default()), false),
        ("ladder", Arc::new(Ladder::default()), true),
        ("summarize", Arc::new(Summarize::default()), true),
        ("chunked", Arc::new(Chunked::default()), true),
    ];
    for folder in recorded::folders() {
        let cases: Vec<Case> =
            threads::real(&folder).unwrap().into_iter().filter_map(Case::of).collect();
        for (name, strategy, asks) in &ways {
            for share in SHARES {
                let mut sums = (0.0, 0.0);
                for case in &cases {
                    let Some(kept) = case.kept(strategy.as_ref(), share, *asks) else { continue };
                    let tail = case.tail(share);
                    let what = format!("{name} at {share} of {}", case.name);
                    assert!(kept.used <= kept.target, "{what}: {} of {}", kept.used, kept.target);
                    let is_long = case.hindsight.needed.len() >= 10;
                    assert!(!is_long || kept.share + 0.1 >= tail, "{what}: {} {tail}", kept.share);
                    let least = if kept.target < 1_000 { USED_BESIDE_WORDS } else { USED };
                    let is_full = kept.share >= 1.0 || kept.used * 100 >= kept.target * least;
                    assert!(is_full, "{what}: {} of {}", kept.used, kept.target);
                    sums = (sums.0 + kept.share, sums.1 + tail);
                }
                assert!(sums.0 >= sums.1, "{name} at {share}: {sums:?}");
            }
        }
    }
}
