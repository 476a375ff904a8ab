//! The size of a thread, which every check of a plan asks for.

use super::{
    brief::Brief,
    snapshot::{Rejection, Snapshot},
};
use crate::message::Message;

impl Snapshot {
    /// Returns the snapshot with its size counted, for work that needs it often: ten thousand messages
    /// take a millisecond.
    pub(super) fn counted(&self) -> Self {
        let mut counted = self.clone();
        counted.size = Some(self.size());
        counted
    }

    /// Returns the tokens of the thread.
    pub(super) fn size(&self) -> u64 {
        self.size.unwrap_or_else(|| self.counter().messages(self.messages()))
    }

    /// Refuses a thread that is not smaller than this one, or is over the target.
    pub(super) fn check_size(&self, messages: &[Message], brief: &Brief) -> Result<(), Rejection> {
        let before = self.size();
        let after = self.counter().messages(messages);
        if after >= before {
            return Err(Rejection::NotSmaller { before, after });
        }
        match brief.target {
            Some(target) if after > target => Err(Rejection::OverTarget { after, target }),
            Some(_) | None => Ok(()),
        }
    }
}
