//! Arbitrary plans of hosts: they are refused, or legal once they are settled.

use std::collections::HashSet;

use proptest::{
    collection::{btree_set, vec},
    prelude::*,
    sample::Index,
    strategy::ValueTree,
    test_runner::TestRunner,
};
use threadfold::{
    CheckpointId, ContentBlock, Message, Plan, Role,
    compact::{Insert, Splice},
    legality, log,
    message::Summary,
    strategy::{Brief, Proposal, Snapshot},
};
use threadfold_testing::generate::{junk_thread, legal_thread};

use crate::support::{brief::brief, recorded::requests, tries::tries};

/// The insertion of a splice: an old message again, a summary, or blocks of a removed message.
#[derive(Clone, Debug)]
enum Put {
    Old(Index),
    Summary(bool),
    Part(Index, Vec<u32>),
}

fn put() -> impl Strategy<Value = Put> {
    prop_oneof![
        2 => any::<Index>().prop_map(Put::Old),
        3 => any::<bool>().prop_map(Put::Summary),
        3 => (any::<Index>(), btree_set(0_u32..4, 1..4))
            .prop_map(|(index, blocks)| Put::Part(index, blocks.into_iter().collect())),
    ]
}

type Cuts = Vec<(Index, usize, Vec<Put>)>;

fn cuts() -> impl Strategy<Value = Cuts> {
    vec((any::<Index>(), 0_usize..6, vec(put(), 0..3)), 1..4)
}

/// An arbitrary plan: mostly in order and in range, rarely sensible.
fn arbitrary_plan(thread: &[Message], cuts: &Cuts) -> Plan {
    let mut cuts: Vec<_> =
        cuts.iter().map(|(start, len, put)| (start.index(thread.len() + 1), *len, put)).collect();
    cuts.sort_by_key(|(start, ..)| *start);
    let splice = |(start, len, put): (usize, usize, &Vec<Put>)| {
        let at = start..(start + len).min(thread.len());
        let insert = |put: &Put| match put {
            Put::Old(index) => {
                Insert::Message { message: thread[index.index(thread.len())].clone() }
            }
            Put::Summary(user) => {
                let role = if *user { Role::User } else { Role::Assistant };
                Insert::Message { message: Message::summary(role, Summary::new("So it was.")) }
            }
            Put::Part(index, blocks) => {
                let message = at.start + index.index(at.len().max(1));
                Insert::Part { message, blocks: blocks.clone() }
            }
        };
        Splice { at: at.clone(), insert: put.iter().map(insert).collect() }
    };
    Plan::from_splices(thread.len(), cuts.into_iter().map(splice).collect())
}

/// Settles a plan, and checks the result if that succeeds.
fn settles(thread: &[Message], plan: Plan, brief: &Brief) -> Result<bool, TestCaseError> {
    let snapshot = Snapshot::new(thread.to_vec());
    let _ = snapshot.accept(&plan, brief);
    let Ok(settled) = snapshot.settle(Proposal::new(plan), brief) else { return Ok(false) };
    let plan = settled.plan.clone();
    let after = plan.after(thread).unwrap();
    prop_assert_eq!(&after, &snapshot.accept(&plan, brief).unwrap());
    let illegal = |messages: &[Message]| legality::violations(messages).len();
    prop_assert!(illegal(&after) <= illegal(thread));
    let reasons = |message: &&Message| {
        message.role == Role::Assistant && message.content.iter().any(ContentBlock::is_reasoning)
    };
    let mut since = after.iter().skip(plan.first_touched()).filter(reasons);
    prop_assert!(since.all(|message| message.prefix_rewritten), "{after:?}");
    let ids = |messages: &[Message]| {
        super::checkpoints(messages).into_iter().map(|(id, _)| id).collect::<Vec<_>>()
    };
    let unique = |ids: &[CheckpointId]| ids.iter().collect::<HashSet<_>>().len() == ids.len();
    let (before, ids) = (ids(thread), ids(&after));
    prop_assert!(!unique(&before) || unique(&ids), "{ids:?}");
    let is_users = |message: &&Message| message.role == Role::User && message.is_summary();
    let ends =
        |message: &Message| matches!(message.content.last(), Some(ContentBlock::Checkpoint(_)));
    let mut new = plan.new_messages().filter(is_users);
    prop_assert!(before.is_empty() || new.all(ends));
    // A stored plan gives the same, and settling again changes nothing.
    let stored = serde_json::to_string(&plan).unwrap();
    let read: Plan = serde_json::from_str(&stored).unwrap();
    prop_assert_eq!(read.after(thread).unwrap(), after);
    let again = snapshot.settle(settled, brief).unwrap();
    prop_assert_eq!(&again.plan, &plan);
    Ok(true)
}

#[test]
fn arbitrary_plans_over_real_threads_are_refused_or_keep_them_legal() {
    let mut runner = TestRunner::new(tries(40));
    let (mut settled, mut asked) = (0, 0);
    let threads = requests().into_iter().map(|(_, _, request)| request.messages.to_vec());
    for thread in threads.filter(|thread| !thread.is_empty()) {
        let thread = log::stamp(thread, 2);
        for _ in 0..40 {
            let (cuts, brief) = (cuts(), brief()).new_tree(&mut runner).unwrap().current();
            asked += 1;
            settled +=
                usize::from(settles(&thread, arbitrary_plan(&thread, &cuts), &brief).unwrap());
        }
    }
    assert!(asked == 0 || settled > 0, "{asked} plans, and none was settled");
}

proptest! {
    #![proptest_config(tries(1_500))]

    #[test]
    fn an_arbitrary_plan_is_refused_or_keeps_the_thread_legal(
        thread in prop_oneof![4 => legal_thread(1..14), 1 => junk_thread(1..10)],
        cuts in cuts(), brief in brief(), stamped in any::<bool>(),
    ) {
        let thread = if stamped { log::stamp(thread, 5) } else { thread };
        settles(&thread, arbitrary_plan(&thread, &cuts), &brief)?;
    }
}
