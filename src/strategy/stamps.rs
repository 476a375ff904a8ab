//! Appends a checkpoint to every new summary, so that an agent can name ranges from there on.

use std::collections::HashSet;

use super::{brief::Brief, snapshot::Snapshot};
use crate::{
    compact::Plan,
    message::{CheckpointId, CheckpointIds, ContentBlock, Message, Role},
};

impl Snapshot {
    /// Returns the plan with a fresh checkpoint at the end of every summary that it inserts as a
    /// user message. Checkpoints in new messages that also occur elsewhere in the thread are
    /// replaced by fresh ones, because a duplicate cannot be resolved. A summary that already ends
    /// with a checkpoint stays as it is. A thread without checkpoints gets none, because its host
    /// does not use them.
    ///
    /// The ids derive from the compaction's id and the thread, so the same plan gets the same ids,
    /// and none of them is in the thread.
    pub(super) fn stamped(&self, plan: Plan, brief: &Brief) -> Plan {
        let Some(last) = self.messages().iter().rev().find_map(last_checkpoint) else {
            return plan;
        };
        let number = brief.compaction.map_or(u64::MAX, |id| id.0);
        let seed = [number, self.messages().len() as u64, last.number()];
        let mut ids = FreshIds {
            thread: self.messages(),
            generator: CheckpointIds::new(seed.into_iter().fold(0, mixed)),
            used: self.ids_that_stay(&plan),
        };
        plan.with_new_messages(|message| {
            ids.replace_duplicates(message);
            if message.role == Role::User && message.is_summary() && !ends_with_checkpoint(message)
            {
                let id = ids.next();
                message.make_mut().content.push(ContentBlock::checkpoint(id));
            }
        })
    }

    /// The checkpoints of the thread after a plan, without those in its new messages.
    fn ids_that_stay(&self, plan: &Plan) -> HashSet<CheckpointId> {
        if plan.new_messages().flat_map(Message::checkpoints).next().is_none() {
            return HashSet::new();
        }
        let bare = plan.clone().with_new_messages(|message| {
            let blocks = &mut message.make_mut().content;
            blocks.retain(|block| !matches!(block, ContentBlock::Checkpoint(_)));
        });
        // A stale plan is rejected later; treat it here as if no message stayed.
        let after = bare.after(self.messages()).unwrap_or_default();
        after.iter().flat_map(Message::checkpoints).map(|(id, _)| id).collect()
    }

    /// Tokens of the checkpoint that ends a new summary.
    pub(super) fn stamp_tokens(&self) -> u64 {
        let id = self.messages().iter().rev().find_map(last_checkpoint);
        id.map_or(0, |id| self.counter().block(&ContentBlock::checkpoint(id)))
    }
}

/// Generates checkpoint ids that the thread has neither before nor after the plan.
struct FreshIds<'a> {
    thread: &'a [Message],
    generator: CheckpointIds,
    /// Ids in the thread after the plan.
    used: HashSet<CheckpointId>,
}

impl FreshIds<'_> {
    fn next(&mut self) -> CheckpointId {
        let (thread, used) = (self.thread, &self.used);
        let id = self.generator.draw(|id| {
            used.contains(&id) || thread.iter().flat_map(Message::checkpoints).any(|it| it.0 == id)
        });
        self.used.insert(id);
        id
    }

    /// Replaces the checkpoints of a new message that also occur elsewhere.
    fn replace_duplicates(&mut self, message: &mut Message) {
        let ids: Vec<_> = message.checkpoints().collect();
        for (id, end) in ids {
            if self.used.insert(id) {
                continue;
            }
            let fresh = self.next();
            if let Some(block) = message.make_mut().content.get_mut(end.saturating_sub(1)) {
                *block = ContentBlock::checkpoint(fresh);
            }
        }
    }
}

fn last_checkpoint(message: &Message) -> Option<CheckpointId> {
    message.checkpoints().last().map(|(id, _)| id)
}

fn ends_with_checkpoint(message: &Message) -> bool {
    matches!(message.content.last(), Some(ContentBlock::Checkpoint(_)))
}

/// Mixes a number into a seed, so that neighbouring numbers give very different seeds.
fn mixed(seed: u64, part: u64) -> u64 {
    (seed ^ part)
        .wrapping_add(0x9E37_79B9_7F4A_7C15)
        .wrapping_mul(0xBF58_476D_1CE4_E5B9)
        .rotate_left(29)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compact::{Insert, Splice},
        log,
        message::{CompactionId, Summary},
        strategy::Proposal,
    };

    fn thread() -> Vec<Message> {
        let question =
            |number: usize| Message::user(format!("{number} {}", "Of some length. ".repeat(9)));
        (0..5).map(question).chain([Message::assistant("Yes."), question(6)]).collect()
    }

    fn plan() -> Plan {
        let summary = |role| {
            let number = Some(CompactionId(0));
            let summary = Summary { compaction: number, ..Summary::new("They talked.") };
            Insert::Message { message: Message::summary(role, summary) }
        };
        let roles = [Role::User, Role::User, Role::Assistant];
        let insert = roles.map(summary).to_vec();
        Plan::from_splices(7, vec![Splice { at: 0..5, insert }])
    }

    fn settled(thread: &[Message], plan: Plan, number: u64) -> Plan {
        let brief = Brief { compaction: Some(CompactionId(number)), ..Brief::default() };
        let snapshot = Snapshot::new(thread.to_vec());
        snapshot.settle(Proposal::new(plan), &brief).unwrap().plan
    }

    #[test]
    fn every_summary_of_a_stamped_thread_ends_with_a_checkpoint_of_its_own() {
        let thread = log::stamp(thread(), 1);
        let plan = settled(&thread, plan(), 0);
        let after = plan.after(&thread).unwrap();
        let ends = after.iter().map(last_checkpoint).collect::<Vec<_>>();
        let [Some(one), Some(two), None, None, Some(kept)] = ends[..] else { panic!("{after:?}") };
        assert!(ends_with_checkpoint(&after[0]) && ends_with_checkpoint(&after[1]));
        assert_ne!(one, two);
        let old: Vec<_> = thread.iter().filter_map(last_checkpoint).collect();
        assert!(!old.contains(&one) && !old.contains(&two) && old.contains(&kept));
    }

    #[test]
    fn the_same_plan_is_stamped_in_the_same_way_and_only_once() {
        let thread = log::stamp(thread(), 1);
        let once = settled(&thread, plan(), 0);
        assert_eq!(settled(&thread, plan(), 0), once);
        assert_eq!(settled(&thread, once.clone(), 0), once);
        assert_ne!(settled(&thread, plan(), 1), once);
    }

    #[test]
    fn a_copy_of_a_message_that_stays_gets_a_checkpoint_of_its_own() {
        let thread = log::stamp(thread(), 1);
        let copy = |index: usize| Insert::Message { message: thread[index].clone() };
        // The first copy replaces its original; the original of the second copy stays.
        let splice = Splice { at: 0..3, insert: vec![copy(0), copy(6)] };
        let plan = settled(&thread, Plan::from_splices(7, vec![splice]), 0);
        let after = plan.after(&thread).unwrap();
        let ids: Vec<_> = after.iter().filter_map(last_checkpoint).collect();
        assert_eq!(
            (after[0].clone(), ids[0]),
            (thread[0].clone(), last_checkpoint(&thread[0]).unwrap())
        );
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 5);
        assert_eq!(after[5], thread[6]);
    }

    #[test]
    fn a_thread_without_checkpoints_gets_none() {
        assert_eq!(settled(&thread(), plan(), 0), plan());
    }
}
