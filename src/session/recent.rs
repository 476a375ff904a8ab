//! The last events of a session, for user interfaces that connect late.

use std::collections::VecDeque;

use super::event::SessionEvent;
use crate::message::ContentBlock;

/// The maximum number of events that are kept.
const KEPT: usize = 256;

/// The maximum bytes of tool results that the older events hold together.
const KEPT_BYTES: u64 = 16 * 1024;

/// The last events. Pieces of one text count as one event.
#[derive(Debug, Default)]
pub(super) struct Recent(VecDeque<Kept>);

#[derive(Debug)]
enum Kept {
    Text(String),
    Thinking(String),
    Other(SessionEvent),
}

impl Kept {
    /// The bytes of a tool result.
    fn bytes(&self) -> u64 {
        let Self::Other(SessionEvent::ToolFinished { content, .. }) = self else { return 0 };
        content.iter().map(ContentBlock::text_bytes).sum()
    }
}

impl Recent {
    pub(super) fn push(&mut self, event: &SessionEvent) {
        let kept = match (event, self.0.back_mut()) {
            (SessionEvent::TextDelta { text }, Some(Kept::Text(before)))
            | (SessionEvent::ThinkingDelta { text }, Some(Kept::Thinking(before))) => {
                before.push_str(text);
                return;
            }
            (SessionEvent::TextDelta { text }, _) => Kept::Text(text.to_string()),
            (SessionEvent::ThinkingDelta { text }, _) => Kept::Thinking(text.to_string()),
            (event, _) => Kept::Other(event.clone()),
        };
        while self.0.len() == KEPT || self.0.iter().map(Kept::bytes).sum::<u64>() > KEPT_BYTES {
            self.0.pop_front();
        }
        self.0.push_back(kept);
    }

    pub(super) fn events(&self) -> Vec<SessionEvent> {
        let events = self.0.iter().map(|kept| match kept {
            Kept::Text(text) => SessionEvent::TextDelta { text: text.as_str().into() },
            Kept::Thinking(text) => SessionEvent::ThinkingDelta { text: text.as_str().into() },
            Kept::Other(event) => event.clone(),
        });
        events.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_joined_and_the_oldest_events_go() {
        let text = |text: &str| SessionEvent::TextDelta { text: text.into() };
        let thought = |text: &str| SessionEvent::ThinkingDelta { text: text.into() };
        let mut recent = Recent::default();
        for event in
            [thought("H"), thought("m"), text("a"), text("b"), SessionEvent::Aborted, text("c")]
        {
            recent.push(&event);
        }
        let joined = [thought("Hm"), text("ab"), SessionEvent::Aborted, text("c")];
        assert_eq!(recent.events(), joined);
        for _ in 0..KEPT - 1 {
            recent.push(&SessionEvent::Aborted);
        }
        assert_eq!((recent.events().len(), &recent.events()[0]), (KEPT, &text("c")));
    }
}
