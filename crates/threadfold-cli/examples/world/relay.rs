//! An agent that sends its whole thread with each request, and the relay between it and its
//! provider. A crash ends the relay with its triggers; views and logs are on the disk, and the agent
//! begins again from the thread that it wrote last.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};
use threadfold::{
    CompactionStrategy, ContextWindow, Message, Model, Request, Role, TokenCounter,
    auto::{AutoCompactor, AutoPolicy},
    drive::Models,
    legality,
    message::{ModelError, ModelErrorKind, ThreadId, Timestamp},
    model::{Clock, Tool},
    store::Journal,
    tokens::ByteEstimate,
    wire::{DecodeOptions, EncodeOptions},
};
use threadfold_cli::relay::{
    Chain, Relay, RelayStep, View,
    compaction::{Compacted, Found, Work, store},
};
use threadfold_testing::shared::simulation::{Actor, Asker, Asks, Fault, Promise, Read, World};

/// The relay and its agent.
pub(crate) const RELAY: Actor = Actor { name: "relay", begin: |world| Box::pin(life(world)) };

/// The requests of the agent in a world, at most.
const REQUESTS: usize = 16;

/// The file of the agent: its thread, and how many requests it has sent.
const THREAD: &str = "agent.json";

/// The table of views, by the links of the messages that they replace.
const VIEWS: &str = "views.json";

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Row {
    view: View,
    thread: ThreadId,
    events: u64,
    /// Whether it was made because the provider refused the request, so that it may hold less of what
    /// the model has not read.
    after_refusal: bool,
}

/// A process of the relay, and the agent that it serves.
struct Served {
    world: World,
    clock: Arc<dyn Clock>,
    thread: Vec<Message>,
    sent: usize,
    views: BTreeMap<String, Row>,
    auto: AutoCompactor,
    strategy: Arc<dyn CompactionStrategy>,
    answers: Arc<dyn Model>,
    summaries: Arc<dyn Model>,
}

/// How a request ended for the relay.
enum Ended {
    Answered(Message),
    Failed(ModelError),
}

async fn life(world: World) -> Result<(), Fault> {
    world.count(|tally| tally.relays += 1);
    let mut served = Served::new(world)?;
    while served.sent < REQUESTS {
        served.turn().await?;
        let text = serde_json::to_string(&(&served.thread, served.sent))
            .map_err(|it| Promise::Kept.broken(it))?;
        // After a failure the agent of the next life begins from an earlier thread.
        let _ = served.world.write(THREAD, text).await;
    }
    Ok(())
}

impl Served {
    fn new(world: World) -> Result<Self, Fault> {
        let (thread, sent) = match world.file(THREAD) {
            Some(text) => serde_json::from_str(&text).map_err(|it| Promise::Kept.broken(it))?,
            None => (Vec::new(), 0),
        };
        let views = match world.file(VIEWS) {
            Some(text) => serde_json::from_str(&text).map_err(|it| Promise::Kept.broken(it))?,
            None => BTreeMap::new(),
        };
        let policy = AutoPolicy { estimates_usage: true, ..AutoPolicy::default() };
        let strategy = world.strategy();
        world.note(format_args!("relay begins before request {sent} with {}", strategy.name()));
        let model =
            |asks| world.model(Asker { name: "relay", asks, rules: Vec::new(), lease: None });
        Ok(Self {
            clock: world.clock(0),
            thread,
            sent,
            views,
            auto: AutoCompactor::new(policy).map_err(|it| Promise::Kept.broken(it))?,
            strategy,
            answers: model(Asks::Relayed),
            summaries: model(Asks::Summaries),
            world,
        })
    }

    /// Sends the thread of the agent with what comes next, and adds the answer.
    async fn turn(&mut self) -> Result<(), Fault> {
        self.push();
        self.sent += 1;
        let request = self.arrived()?;
        let world = self.world.clone();
        match world.maybe_dropped(20, self.relay(request)).await {
            Some(Ok(Ended::Answered(message))) => {
                self.thread.push(message);
                self.world.count(|tally| tally.turns += 1);
                Ok(())
            }
            Some(Ok(Ended::Failed(error))) => {
                self.world.note(format_args!("the agent is told: {error}"));
                Ok(())
            }
            Some(Err(fault)) => Err(fault),
            None => Ok(()),
        }
    }

    /// Adds the results of the open calls, or a text. Sometimes the agent first takes back its last
    /// round, so that its thread branches.
    fn push(&mut self) {
        if self.world.numbers().once_in(15) {
            let user = self.thread.iter().rposition(Message::is_typed);
            self.thread.truncate(user.unwrap_or_default());
        }
        let Some(last) = self.thread.last() else {
            return self.thread.push(Message::user("Read the program, part by part."));
        };
        if last.role != Role::Assistant {
            return;
        }
        let results = Read::results(last);
        self.thread.push(match results.is_empty() {
            true => Message::user(format!("Go on with request {}.", self.sent)),
            false => Message::new(Role::User, results),
        });
    }

    /// The request as the relay reads it from the agent's body.
    fn arrived(&self) -> Result<Request, Fault> {
        let vendor = self.world.vendor();
        let request = Request {
            system: Arc::new(vec![Message::system("You work on a large program.")]),
            tools: Arc::new(vec![Read.spec()]),
            max_output: Some(self.world.window() / 8),
            ..Request::new(self.thread.clone())
        };
        let body = vendor.dialect.encode(&request, &EncodeOptions::for_model(vendor.model)).body;
        let read = vendor.dialect.decode_slice(body.as_str().as_bytes(), &DecodeOptions::default());
        read.map_err(|error| Promise::Legal.broken(format!("the agent's body: {error}")))
    }

    /// Brings a request to the provider.
    async fn relay(&mut self, request: Request) -> Result<Ended, Fault> {
        let chain = Chain::of(self.world.vendor().dialect.name(), &request.messages);
        let found = chain.longest_first().find_map(|(count, link)| {
            let row = self.views.get(&link.to_string())?;
            // After a crash the agent may go back to an earlier point.
            let serves = row.view.covers == count && row.view.serves(&request.messages);
            serves.then(|| row.clone())
        });
        let mut found = found;
        let view = found.as_ref().map(|row| &row.view);
        let now = self.clock.now();
        let window = Some(ContextWindow::new(self.world.window()));
        let mut relay = Relay::new(request, view, window, self.auto.clone(), now);
        let (mut unkept, mut has_failed) = (None, false);
        loop {
            match relay.step().clone() {
                RelayStep::Compact { .. } => {
                    let compacted = self.compact(&relay, found.as_ref(), unkept.as_ref()).await;
                    let Some(compacted) = compacted else {
                        has_failed = true;
                        relay.failed(self.clock.now());
                        continue;
                    };
                    let Compacted { view, thread, events, mut journal, .. } = compacted;
                    let after_refusal = relay.was_refused();
                    let row = Row { view, thread, events, after_refusal };
                    if after_refusal {
                        unkept = Some(journal);
                    } else {
                        let _ = store(&mut journal).await;
                        self.keep(&chain, &row).await;
                    }
                    relay.compacted(&row.view, self.clock.now());
                    found = Some(row);
                }
                RelayStep::Send => {
                    let sent = relay.request().unwrap_or_else(|| relay.original().clone());
                    self.check(&relay, found.as_ref(), &sent, has_failed)?;
                    if !relay.was_refused() {
                        self.auto = relay.auto().clone();
                    }
                    match self.answers.complete(sent).await {
                        Ok(answer) => {
                            if let Some((row, mut journal)) = found.zip(unkept) {
                                let _ = store(&mut journal).await;
                                self.keep(&chain, &row).await;
                            }
                            let estimated = relay.estimate();
                            self.auto = relay.into_auto();
                            if let Some(usage) = answer.usage {
                                let _ = self.auto.counted(estimated, usage.input);
                            }
                            return Ok(Ended::Answered(answer.message));
                        }
                        Err(error) if error.kind == ModelErrorKind::VoidReasoning => {
                            if relay.is_without_reasoning() {
                                return Err(Promise::Legal.broken(error));
                            }
                            relay.refused(&error.kind, self.clock.now());
                        }
                        Err(error) if error.is_overflow() => {
                            relay.refused(&error.kind, self.clock.now());
                        }
                        Err(error) => return Ok(Ended::Failed(error)),
                    }
                }
                RelayStep::Refused | _ => {
                    return Ok(Ended::Failed(ModelError::cut_short()));
                }
            }
        }
    }

    /// Compacts a request; `None` if that fails, or is dropped midway.
    async fn compact(
        &self,
        relay: &Relay,
        found: Option<&Row>,
        unkept: Option<&Journal>,
    ) -> Option<Compacted> {
        let RelayStep::Compact { reason, target, limit } = relay.step().clone() else {
            return None;
        };
        let id = format!("thread-{:032x}", self.world.numbers().below(u64::MAX));
        let work = Work {
            id: id.parse().ok()?,
            request: relay.original(),
            messages: relay.original().messages.len(),
            found: found.map(|row| Found {
                view: &row.view,
                thread: &row.thread,
                events: row.events,
            }),
            reason,
            now: Timestamp(self.clock.now().0),
            target,
            limit,
            window: Some(ContextWindow::new(self.world.window())),
            strategy: self.strategy.as_ref(),
            models: Models {
                conversation: Some(self.summaries.as_ref()),
                clock: Some(self.clock.as_ref()),
                ..Models::default()
            },
            store: &self.world.logs(),
            unstored: unkept.cloned(),
        };
        match self.world.maybe_dropped(10, work.run()).await {
            Some(Ok(compacted)) => {
                let Compacted { before, after, .. } = &compacted;
                self.world.note(format_args!("relay compacts {before} to {after} tokens"));
                self.world.count(|tally| tally.compactions += 1);
                Some(compacted)
            }
            Some(Err(error)) => {
                self.world.note(format_args!("relay compacts nothing: {error}"));
                self.world.count(|tally| tally.failed += 1);
                None
            }
            None => None,
        }
    }

    /// Keeps a view, at least in memory.
    async fn keep(&mut self, chain: &Chain, row: &Row) {
        let Some(link) = chain.after(row.view.covers) else { return };
        self.views.insert(link.to_string(), row.clone());
        let text = serde_json::to_string(&self.views).unwrap_or_default();
        if self.world.write(VIEWS, text).await.is_err() {
            self.world.lost_view();
        }
    }

    /// Checks that what the model has not read arrives as the agent sent it, and that a request of
    /// which no compaction failed fits, if what it must hold leaves room. A view that a refusal made
    /// may cut what was not read, until there is more than it covers.
    fn check(
        &self,
        relay: &Relay,
        found: Option<&Row>,
        sent: &Request,
        has_failed: bool,
    ) -> Result<(), Fault> {
        let window = self.world.window();
        let whole = &relay.original().messages;
        let unread = whole.get(legality::unread_from(whole)..).unwrap_or_default();
        let tokens = ByteEstimate::TRIGGER.messages(unread);
        // A refusal without a limit is believed at first, so less than the window may fit.
        if tokens > window / 2 || relay.was_refused() {
            return Ok(());
        }
        let is_cut = found.is_some_and(|it| it.after_refusal && it.view.covers == whole.len());
        if !is_cut && !sent.messages.ends_with(unread) {
            let what = format!("{tokens} tokens of a window of {window}: {unread:.300?}");
            return Err(Promise::Unread.broken(what));
        }
        if relay.tokens() > window && !has_failed {
            let what = format!("{} tokens are relayed into a window of {window}", relay.tokens());
            return Err(Promise::Fits.broken(what));
        }
        Ok(())
    }
}
