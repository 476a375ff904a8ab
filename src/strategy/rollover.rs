//! `rollover`: a fresh window that begins with an account of the thread.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{
    ask::Ask, contract::CompactionStrategy, digest, error::Result, proposal::Proposal, view::View,
};

options! {
    /// Begins a fresh window: of the thread stays only what the model has not read yet, or else its
    /// last answer, and an account takes the place of everything before. Calls no model.
    ///
    /// It is the fill of [`Digest`](super::Digest) without a tail of older messages and with a
    /// limit of its own. The account has what the user typed, the task first, what was done and
    /// what came of it, lines with names that the agent may need again, and the last steps. The
    /// [notes](mod@crate::notes) of the agent follow it, and the tool
    /// [`recall`](mod@crate::recall) reads what it leaves out; the account names that tool if the
    /// model has it. With
    /// [`compact_context_tool`](crate::session::SessionBuilder::compact_context_tool) the model
    /// begins the fresh window itself.
    ///
    /// A small beginning leaves most of a large window to work in, so rollovers are rare, but no older
    /// message stays word for word. Choose it for an agent that keeps notes. If the target leaves
    /// too little room, it does what a digest does.
    ///
    /// ```
    /// use threadfold::{Message, strategy::*};
    ///
    /// let mut thread = vec![Message::user("Port the parser to Rust. Never touch the lexer.")];
    /// let done = |step| Message::assistant(format!("Step {step} of the port is done."));
    /// thread.extend((0..40).map(done));
    /// thread.push(Message::user("Go on."));
    /// let view = View::new(Snapshot::new(thread), Brief::from(400));
    /// let proposal = without_model(&Rollover::default(), &view)?;
    /// let after = view.thread.accept(&proposal.plan, &view.brief)?;
    /// let is_summary: Vec<bool> = after.iter().map(Message::is_summary).collect();
    /// assert_eq!(is_summary, [false, true, false], "the task, the account, the newest text");
    /// # Ok::<(), StrategyError>(())
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Rollover {
        /// Upper limit for the tokens of the account, without what the user typed.
        pub tokens: u64 = 8_000,
    }
}

#[async_trait]
impl CompactionStrategy for Rollover {
    fn name(&self) -> &str {
        "rollover"
    }

    async fn propose(&self, view: &View, _: &mut Ask<'_>) -> Result<Proposal> {
        digest::fresh(view, self.tokens).map(Proposal::filled)
    }
}
