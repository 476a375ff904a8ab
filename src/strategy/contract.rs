//! The interface of a strategy.

use std::fmt;

use async_trait::async_trait;

use super::{ask::Ask, error::StrategyError, proposal::Proposal, view::View};

/// An algorithm that makes a thread smaller. It proposes a plan and never acts.
///
/// ```
/// use async_trait::async_trait;
/// use futures::executor::block_on;
/// use threadfold::{Message, Plan, Request};
/// use threadfold::strategy::{Ask, CompactionStrategy, ModelRole, Proposal, StrategyError, View};
/// use threadfold::strategy::{Brief, Snapshot, summary_of};
/// use threadfold::{drive::{Models, propose}, testing::ScriptedModel};
///
/// /// Sums up everything before the user's newest text.
/// #[derive(Debug)]
/// struct SumUp;
///
/// #[async_trait]
/// impl CompactionStrategy for SumUp {
///     fn name(&self) -> &str {
///         "sum-up"
///     }
///
///     async fn propose(&self, view: &View, ask: &mut Ask<'_>) -> Result<Proposal, StrategyError> {
///         let messages = view.thread.messages();
///         let last = messages.iter().rposition(Message::is_typed).unwrap_or(messages.len());
///         let cut = view.thread.cut_at_or_before(last);
///         let question = Message::user("Sum up the conversation so far.");
///         let request = [&messages[..cut], &[question]].concat();
///         let answer = ask.question(ModelRole::Fast, Request::new(request)).await?;
///         Ok(Plan::summarise(messages, 0..cut, summary_of(&answer)?)?.into())
///     }
/// }
///
/// let long = Message::assistant("I looked. ".repeat(40));
/// let thread = [Message::user("Where is the parser?"), long, Message::user("How long is it?")];
/// let thread = Snapshot::new(thread.to_vec());
/// let model = ScriptedModel::new(["They looked for the parser."]);
/// let models = Models::one(&model);
/// let proposal = block_on(propose(&SumUp, &thread, &Brief::default(), models, &mut |_, _| {}))?;
/// assert_eq!((proposal.calls, proposal.plan.messages_after()), (1, 2));
/// # Ok::<(), threadfold::drive::CompactionError>(())
/// ```
#[async_trait]
pub trait CompactionStrategy: fmt::Debug + Send + Sync {
    /// The name of the strategy in kebab case, for settings, logs and the
    /// [registry](super::StrategyRegistry).
    fn name(&self) -> &str;

    /// Proposes a plan for this thread. Models are asked through `ask` only, and nothing else is
    /// awaited, so that the same answers give the same proposal. The future may be dropped at any
    /// point; nothing has changed then.
    ///
    /// # Errors
    ///
    /// [`StrategyError`]. Its texts may quote requests, so a host with a redactor gets them redacted.
    /// [`StrategyError::NothingToCompact`] if nothing can be removed; before the first call of a model
    /// that is no compaction: a session gives it no id, emits no event and logs nothing.
    async fn propose(&self, view: &View, ask: &mut Ask<'_>) -> Result<Proposal, StrategyError>;
}
