//! Carrying a plan out on a host's messages, and undoing it.

use super::{
    host_plan::{HostPlan, Piece},
    new_message::NewMessage,
};
use crate::compact::CompactError;

/// What a plan removed from a host's thread, with which it can be undone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "the removed messages are dropped with it"]
pub struct Applied<M> {
    /// The messages that were removed or replaced, ascending, with their index before the plan.
    pub removed: Vec<(usize, M)>,
    /// The index before the plan of each message after it; `None` for a new one.
    origins: Vec<Option<usize>>,
}

impl HostPlan {
    /// Carries the plan out. `make` makes each new message from its description and the old thread.
    /// All new messages are made before the thread changes; the others are moved, not copied.
    ///
    /// ```
    /// use threadfold::foreign::{HostPlan, shadows};
    /// use threadfold::{Plan, Role};
    ///
    /// let mut thread = ["one", "two", "three"].map(|text| (Role::Assistant, text.to_owned())).to_vec();
    /// let shadows = shadows(&thread);
    /// let plan = Plan::summarise(&shadows, 0..2, "One and two.")?;
    /// let applied = HostPlan::new(&plan, &shadows)?.apply(&mut thread, |new, _| (new.role, new.text()))?;
    /// assert!(thread[0].1.contains("One and two."));
    /// assert_eq!(applied.removed.len(), 2);
    /// # Ok::<(), threadfold::compact::CompactError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CompactError::Length`] if the thread has another number of messages than the plan was made
    /// for; it is then unchanged.
    pub fn apply<M>(
        &self,
        messages: &mut Vec<M>,
        mut make: impl FnMut(&NewMessage, &[M]) -> M,
    ) -> Result<Applied<M>, CompactError> {
        let (planned, found) = (self.messages_before(), messages.len());
        if planned != found {
            return Err(CompactError::Length { planned, found });
        }
        let made = self.pieces().iter().filter_map(|piece| match piece {
            Piece::Keep(_) => None,
            Piece::New(new) => Some(make(new, messages)),
        });
        let mut made = made.collect::<Vec<M>>().into_iter();
        let mut origins = Vec::with_capacity(self.messages_after());
        let mut after = Vec::with_capacity(self.messages_after());
        let mut removed = Vec::new();
        let mut old = std::mem::take(messages).into_iter().enumerate();
        for piece in self.pieces() {
            let Piece::Keep(range) = piece else {
                after.extend(made.next());
                origins.push(None);
                continue;
            };
            for (index, message) in old.by_ref() {
                if index < range.start {
                    removed.push((index, message));
                    continue;
                }
                after.push(message);
                origins.push(Some(index));
                if index + 1 == range.end {
                    break;
                }
            }
        }
        removed.extend(old);
        *messages = after;
        Ok(Applied { removed, origins })
    }
}

impl<M> Applied<M> {
    /// Undoes the plan: the removed messages are in the thread again as the same values, and the
    /// new ones are dropped. Messages that were appended since stay. Observe the thread afterwards:
    /// the compactor then forgets the summary.
    ///
    /// ```
    /// use threadfold::foreign::{HostPlan, shadows};
    /// use threadfold::{Plan, Role};
    ///
    /// let said = |text: &str| (Role::Assistant, text.to_owned());
    /// let mut thread = vec![said("one"), said("two"), said("three")];
    /// let shadows = shadows(&thread);
    /// let plan = HostPlan::new(&Plan::summarise(&shadows, 0..2, "Both.")?, &shadows)?;
    /// let applied = plan.apply(&mut thread, |new, _| (new.role, new.text()))?;
    /// thread.push(said("four"));
    /// applied.undo(&mut thread)?;
    /// assert_eq!(thread, ["one", "two", "three", "four"].map(said));
    /// # Ok::<(), threadfold::compact::CompactError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CompactError::Length`] if the thread has fewer messages than the plan left; it is then
    /// unchanged.
    pub fn undo(self, messages: &mut Vec<M>) -> Result<(), CompactError> {
        let (planned, found) = (self.origins.len(), messages.len());
        if found < planned {
            return Err(CompactError::Length { planned, found });
        }
        let mut restored = self.removed;
        let mut left = std::mem::take(messages).into_iter();
        let kept = self.origins.iter().zip(left.by_ref().take(planned));
        restored.extend(kept.filter_map(|(origin, message)| Some(((*origin)?, message))));
        restored.sort_by_key(|(index, _)| *index);
        messages.extend(restored.into_iter().map(|(_, message)| message));
        messages.extend(left);
        Ok(())
    }
}
