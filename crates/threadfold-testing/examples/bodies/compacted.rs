//! A history after a compaction.

use std::error::Error;

use futures::executor::block_on;
use rand::rngs::Xoshiro256PlusPlus;
use threadfold::{
    Message, Model, StrategyRegistry, async_trait,
    drive::{Models, propose},
    message::{Answer, Json, ModelError, Opaque, Request, Role, StopReason, Text},
    strategy::{Brief, Snapshot},
    testing::ExtractiveModel,
    tokens::{ByteEstimate, TokenCounter},
};

use super::{
    below,
    history::{History, Home},
};

/// Returns the messages of a history after a compaction by any strategy; unchanged if the strategy finds
/// nothing to remove.
pub(super) fn compacted(
    history: &History,
    random: &mut Xoshiro256PlusPlus,
) -> Result<Vec<Message>, Box<dyn Error>> {
    let registry = StrategyRegistry::default();
    let names: Vec<&str> = registry.names().collect();
    let name = names.get(below(random, names.len())).ok_or("there is no strategy")?;
    let thread = Snapshot::of_request(&history.request);
    let tokens = ByteEstimate::TRIGGER.messages(thread.messages());
    let binds_reasoning = below(random, 2) == 0;
    let brief = Brief { target: Some(tokens / 2), binds_reasoning, ..Brief::default() };
    let model = Provider(history.home);
    let models = Models { conversation: Some(&model), ..Models::default() };
    let strategy = registry.get(name)?;
    let mut messages = history.request.messages.to_vec();
    let mut observe = |_: &_, _: Option<&_>| {};
    let proposed = propose(strategy.as_ref(), &thread, &brief, models, &mut observe);
    // A strategy may refuse a short thread.
    if let Ok(proposal) = block_on(proposed) {
        proposal.plan.apply(&mut messages)?;
    }
    Ok(messages)
}

/// A model that picks sentences for summaries, at a provider with its own compaction or without.
#[derive(Debug)]
struct Provider(&'static Home);

#[async_trait]
impl Model for Provider {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        ExtractiveModel.complete(request).await
    }

    async fn compact_natively(
        &self,
        _: Request,
        _: Option<Text>,
    ) -> Result<Option<Answer>, ModelError> {
        let Ok(value) = Json::parse(self.0.compaction) else { return Ok(None) };
        let block = Opaque::new(self.0.dialect.name(), value);
        let message = Message::new(Role::Assistant, vec![block.into()]);
        Ok(Some(Answer::new(message, StopReason::PauseTurn, None)))
    }
}
