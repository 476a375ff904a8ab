//! What a host set in the thread for all that follows, and that no compaction may undo.
//!
//! OpenAI Responses has items that offer further tools or change the effort from a point of the thread
//! on. A compaction removes them with the messages around them. The provider restores the effort only
//! when it compacts on its own account, by an item directly after its compaction (OpenAI, guide
//! "Compaction", November 2026); after a compaction that a client asked for, the client restores both.
//! So every plan keeps them there, whatever its strategy.

use std::{collections::HashSet, ptr};

use super::snapshot::Snapshot;
use crate::{
    compact::{Insert, Plan},
    message::{ContentBlock, Message, Opaque, Role},
};

impl Snapshot {
    /// Returns the plan with the settings in effect that its ranges would lose: in the summary that
    /// replaces a range, directly after the provider's own blocks, or in a system message if there is
    /// none.
    pub(super) fn with_settings(&self, plan: Plan) -> Plan {
        let all = self.messages().iter().flat_map(|message| &message.content);
        let in_effect = Opaque::settings_in_effect(all);
        if in_effect.is_empty() {
            return plan;
        }
        let in_effect: HashSet<*const Opaque> = in_effect.into_iter().map(ptr::from_ref).collect();
        let is_in_effect = |block: &ContentBlock| matches!(block, ContentBlock::Opaque(opaque) if in_effect.contains(&ptr::from_ref(opaque)));
        plan.with_inserts(|at, inserts| {
            let removed = self.messages().get(at).unwrap_or_default();
            let settings = removed.iter().flat_map(|message| &message.content);
            let settings = settings.filter(|block| is_in_effect(block));
            let stays = inserts.iter().flat_map(|it| self.blocks(it));
            let stays: HashSet<&str> = stays.filter_map(text).collect();
            let lost = settings.filter(|it| text(it).is_none_or(|text| !stays.contains(text)));
            add(lost.cloned().collect(), inserts);
        })
    }

    /// The blocks that an insert puts into the thread.
    fn blocks<'a>(&'a self, insert: &'a Insert) -> Vec<&'a ContentBlock> {
        match insert {
            Insert::Message { message } => message.content.iter().collect(),
            Insert::Part { message, blocks } => {
                let content = self.messages().get(*message).map(|message| &message.content);
                blocks.iter().filter_map(|at| content?.get(*at as usize)).collect()
            }
        }
    }
}

/// The text of an opaque block.
fn text(block: &ContentBlock) -> Option<&str> {
    if let ContentBlock::Opaque(opaque) = block { Some(opaque.value.as_str()) } else { None }
}

fn add(settings: Vec<ContentBlock>, inserts: &mut Vec<Insert>) {
    if settings.is_empty() {
        return;
    }
    let summary = inserts.iter_mut().find_map(|insert| match insert {
        Insert::Message { message } => Some(message).filter(|message| message.is_summary()),
        Insert::Part { .. } => None,
    });
    let Some(summary) = summary else {
        inserts.push(Insert::Message { message: Message::new(Role::System, settings) });
        return;
    };
    let content = &mut summary.make_mut().content;
    let of_provider =
        content.iter().take_while(|block| matches!(block, ContentBlock::Opaque(_))).count();
    content.splice(of_provider..of_provider, settings).for_each(drop);
}
