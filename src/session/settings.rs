//! The fixed settings of a session.

use std::sync::Arc;

use crate::{
    message::{ContextWindow, Messages, Text},
    model::{Clock, Model, Sleeper, StdClock, StdSleeper, Tool},
    retention::RetentionPolicy,
    store::Archive,
    strategy::{CompactionStrategy, Ladder, StrategyRegistry},
};

/// The settings that a builder collects, a session keeps and a fork inherits.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) archive: Option<Arc<dyn Archive>>,
    pub(super) tools: Vec<Arc<dyn Tool>>,
    pub(super) system: Messages,
    pub(super) reminder: Option<Text>,
    pub(super) remind_every: Option<u64>,
    pub(super) strategy: Arc<dyn CompactionStrategy>,
    /// The strategies that can be chosen by name.
    pub(super) registry: StrategyRegistry,
    pub(super) fast: Option<Arc<dyn Model>>,
    pub(super) retention: Option<RetentionPolicy>,
    pub(super) rules_in_system_prompt: bool,
    pub(super) window: Option<ContextWindow>,
    pub(super) max_output: Option<u64>,
    pub(super) max_rounds: u32,
    /// The most tokens of a tool result in the thread.
    pub(super) max_tool_result: Option<u64>,
    /// Whether a panic of a tool goes on to the host.
    pub(super) tool_panics_unwind: bool,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) sleeper: Arc<dyn Sleeper>,
    pub(super) seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            archive: None,
            tools: Vec::new(),
            system: Messages::default(),
            reminder: None,
            remind_every: None,
            strategy: Arc::new(Ladder::default()),
            registry: StrategyRegistry::default(),
            fast: None,
            retention: Some(RetentionPolicy::default()),
            rules_in_system_prompt: false,
            window: None,
            max_output: None,
            max_rounds: 100,
            max_tool_result: None,
            tool_panics_unwind: false,
            clock: Arc::new(StdClock),
            sleeper: Arc::new(StdSleeper),
            seed: 0,
        }
    }
}
