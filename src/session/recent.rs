//! The last events of a session, for those who connect late.

use std::collections::VecDeque;

use super::event::SessionEvent;

/// How many events are kept while a turn runs.
const KEPT: usize = 256;

/// The most bytes of tool results that the older ones of these events may hold together, and the
/// most bytes of all events between two turns.
const KEPT_BYTES: usize = 16 * 1024;

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
    /// The bytes of its texts, if they may be many.
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Thinking(text) => text.len(),
            Self::Other(SessionEvent::ToolFinished { content, .. }) => {
                content.iter().map(|block| block.text_bytes() as usize).sum()
            }
            Self::Other(_) => 0,
        }
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
        let results = |all: &VecDeque<Kept>| -> usize {
            all.iter().filter(|kept| matches!(kept, Kept::Other(_))).map(Kept::bytes).sum()
        };
        while self.0.len() == KEPT || results(&self.0) > KEPT_BYTES {
            self.0.pop_front();
        }
        self.0.push_back(kept);
    }

    /// Frees the memory of older events, because the turn is over.
    pub(super) fn shrink(&mut self) {
        let mut room = KEPT_BYTES;
        let last = self.0.iter().rev().map_while(|kept| {
            room = room.checked_sub(kept.bytes() + size_of::<Kept>())?;
            Some(())
        });
        let older = self.0.len().saturating_sub(last.count().max(1));
        self.0.drain(..older);
        // With room for the next turn, which would have to ask for it otherwise.
        self.0.shrink_to(2 * KEPT_BYTES / size_of::<Kept>());
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

    #[test]
    fn between_turns_only_the_last_16_kib_stay_and_at_least_one_event() {
        let mut recent = Recent::default();
        recent.shrink();
        assert_eq!(recent.events(), []);
        let events = || [SessionEvent::Aborted, SessionEvent::AnswerDiscarded];
        events().into_iter().cycle().take(KEPT).for_each(|event| recent.push(&event));
        recent.shrink();
        let kept = recent.0.len();
        assert!(kept > 20 && recent.0.capacity() * size_of::<Kept>() <= 2 * KEPT_BYTES);
        assert!(recent.events().ends_with(&events()));
        let long = SessionEvent::TextDelta { text: "a".repeat(20_000).into() };
        recent.push(&long);
        recent.shrink();
        assert_eq!(recent.events(), [long]);
    }
}
