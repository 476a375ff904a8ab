//! The data of a run: what is stored between two answers.

use std::{ops::Range, time::Duration};

use serde::{Deserialize, Serialize};
use threadfold_edl::Workspace;

use super::{options::Chunked, step::ChunkStep};
use crate::{
    message::{Message, Request, Text, Usage},
    strategy::run_error::RunError,
};

/// The file that the model edits. Its content at the end of the run is the summary.
const SUMMARY: &str = "/summary.md";

/// Version of the stored form. Version 1 can be read too: its missing fields have defaults.
pub(super) const FORMAT: u32 = 2;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Data {
    pub(super) format: u32,
    pub(super) options: Chunked,
    pub(super) focus: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rules: Option<Text>,
    pub(super) next_prompt: Option<Message>,
    pub(super) rendered: Text,
    /// The bytes of each chunk in the rendering.
    pub(super) chunks: Vec<Range<usize>>,
    /// Number of finished chunks, which is the index of the current one.
    pub(super) done: usize,
    pub(super) workspace: Workspace,
    /// The workspace before the current chunk.
    pub(super) before: Workspace,
    /// The conversation about the current chunk.
    pub(super) request: Request,
    pub(super) rounds: usize,
    pub(super) retries: usize,
    /// Whether the model was reminded to edit the summary.
    pub(super) nudged: bool,
    /// Whether an edit of the current chunk was refused.
    pub(super) refused: bool,
    /// The summary after the last edit that did not fit, shortened without a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) too_large: Option<Text>,
    /// Whether the summary was condensed for the current chunk.
    #[serde(default)]
    pub(super) condensed: bool,
    pub(super) chunk_usage: Usage,
    pub(super) state: State,
    pub(super) steps: Vec<ChunkStep>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum State {
    Asking {
        after: Duration,
        #[serde(default)]
        task: Task,
    },
    #[default]
    Done,
    Failed {
        error: RunError,
    },
}

/// The task of the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Task {
    /// Fold the current chunk into the summary.
    #[default]
    Fold,
    /// Shorten the summary.
    Condense,
}

impl Data {
    /// The summary so far.
    pub(super) fn summary(&self) -> &str {
        summary(&self.workspace)
    }

    /// The text of the current chunk; empty once all are done.
    pub(super) fn chunk(&self) -> &str {
        let Some(bytes) = self.chunks.get(self.done) else { return "" };
        let chunk = self.rendered.get(bytes.clone());
        debug_assert!(chunk.is_some(), "a run that is read is checked: {bytes:?}");
        chunk.unwrap_or_default()
    }

    /// Whether the summary has any text.
    pub(super) fn has_summary(&self) -> bool {
        !self.summary().trim().is_empty()
    }
}

/// The summary in a workspace; empty if the model deleted the file.
pub(super) fn summary(workspace: &Workspace) -> &str {
    workspace.text(SUMMARY).unwrap_or_default()
}

/// A workspace that holds only the summary.
pub(super) fn workspace_of(summary: &str) -> Workspace {
    let mut workspace = Workspace::new();
    // The path is a constant that names a file, so the insertion cannot fail.
    let _ = workspace.insert(SUMMARY, summary);
    workspace
}
