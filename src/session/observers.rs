//! The observers of a session.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use super::{error::SessionError, event::SessionEvent};

type Observer = Arc<dyn Fn(Result<&SessionEvent, &SessionError>) + Send + Sync>;

/// Functions that see every event of a session.
#[derive(Clone, Default)]
pub(super) struct Observers(Vec<Observer>);

impl Observers {
    pub(super) fn add(
        &mut self,
        observer: impl Fn(Result<&SessionEvent, &SessionError>) + Send + Sync + 'static,
    ) {
        self.0.push(Arc::new(observer));
    }

    /// Shows them an event. An observer that panics does not harm the turn or the others.
    pub(super) fn see(&self, event: Result<&SessionEvent, &SessionError>) {
        for observer in &self.0 {
            let _ = catch_unwind(AssertUnwindSafe(|| observer(event)));
        }
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} observers", self.0.len())
    }
}
