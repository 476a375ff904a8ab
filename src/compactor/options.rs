//! The options that a host sets on a compactor. None of them is stored.

use std::sync::Arc;

use crate::{
    message::{ContextWindow, Message, Redactor, ToolSpec},
    retention::RetentionPolicy,
    strategy::{CompactionStrategy, Ladder},
    tokens::{ByteEstimate, TokenCounter},
};

/// The options of a compactor.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) strategy: Arc<dyn CompactionStrategy>,
    pub(super) redactor: Option<Arc<dyn Redactor>>,
    pub(super) retention: Option<RetentionPolicy>,
    pub(super) counter: Arc<dyn TokenCounter>,
    pub(super) window: Option<ContextWindow>,
    pub(super) system: Arc<Vec<Message>>,
    pub(super) tools: Arc<Vec<ToolSpec>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            strategy: Arc::new(Ladder::default()),
            redactor: None,
            retention: Some(RetentionPolicy::default()),
            counter: Arc::new(ByteEstimate::TRIGGER),
            window: None,
            system: Arc::default(),
            tools: Arc::default(),
        }
    }
}
