//! A host's own loop: a vector of messages and a compactor, both stored after each round.

use std::sync::Arc;

use threadfold::{
    Compactor, ContextWindow, Message, Model, Request, Role, auto::Refusal, compactor::RequestStep,
    drive::Models, legality, message::ToolSpec, model::Tool, strategy::Brief,
};

use super::{
    agent::Read,
    fault::{Fault, Promise},
    provider::{Asker, Asks, Seat},
    stage::Actor,
    world::World,
};

/// The loop.
pub const OWN_LOOP: Actor = Actor { name: "loop", begin: |world| Box::pin(life(world)) };

/// The rounds of a world.
const ROUNDS: usize = 14;

const RULE: &str = "Never send a mail.";

/// The file with the compactor, the vector, the vector before the last compaction, and the number of
/// rounds.
const FILE: &str = "loop.json";

type Stored = (Compactor, Vec<Message>, Option<Vec<Message>>, usize);

async fn life(world: World) -> Result<(), Fault> {
    world.count(|tally| tally.loops += 1);
    let seat = |asks| world.seat(Asker { name: "loop", asks, rules: vec![RULE], lease: None });
    let (answers, summaries) = (seat(Asks::Answers), seat(Asks::Summaries));
    let mut looped = Loop::read(&world)?;
    while looped.round < ROUNDS {
        looped.turn(&answers, &summaries).await?;
        let text =
            serde_json::to_string(&looped.stored()).map_err(|it| Promise::Kept.broken(it))?;
        // After a failure the next round is written.
        let _ = world.write(FILE, text).await;
    }
    Ok(())
}

struct Loop {
    world: World,
    compactor: Compactor,
    messages: Vec<Message>,
    /// The vector before the last compaction, for an undo.
    before: Option<Vec<Message>>,
    round: usize,
    system: Arc<Vec<Message>>,
    tools: Arc<Vec<ToolSpec>>,
}

impl Loop {
    /// Reads what an earlier life stored.
    fn read(world: &World) -> Result<Self, Fault> {
        let (compactor, messages, before, round) = match world.file(FILE) {
            Some(text) => {
                let stored: Stored =
                    serde_json::from_str(&text).map_err(|it| Promise::Kept.broken(it))?;
                let again =
                    serde_json::to_string(&stored).map_err(|it| Promise::Kept.broken(it))?;
                if again != *text {
                    return Err(Promise::Kept.broken("a compactor is read as another one"));
                }
                stored
            }
            None => {
                let mut compactor = Compactor::default();
                compactor.add_rule(RULE).map_err(|it| Promise::Kept.broken(it))?;
                (compactor, Vec::new(), None, 0)
            }
        };
        let system = Arc::new(vec![Message::system("You work on a large program.")]);
        let tools = Arc::new(vec![Read.spec()]);
        let mut looped =
            Self { world: world.clone(), compactor, messages, before, round, system, tools };
        looped.equip();
        Ok(looped)
    }

    fn stored(&self) -> Stored {
        (self.compactor.clone(), self.messages.clone(), self.before.clone(), self.round)
    }

    /// Sets the options of the compactor, which are not stored.
    fn equip(&mut self) {
        let strategy = self.world.strategy();
        self.world.note(format_args!("loop begins round {} with {}", self.round, strategy.name()));
        self.compactor = std::mem::take(&mut self.compactor)
            .with_window(ContextWindow::new(self.world.window()))
            .with_context(Arc::clone(&self.system), Arc::clone(&self.tools))
            .with_strategy(strategy);
        self.compactor.observe(&self.messages);
    }

    /// Adds what comes next, keeps the vector within the window, and asks the model.
    async fn turn(&mut self, answers: &Arc<Seat>, summaries: &Arc<Seat>) -> Result<(), Fault> {
        self.push();
        self.compactor.observe(&self.messages);
        if self.world.numbers().once_in(12)
            && let Some(before) = self.before.take()
        {
            self.undo(before);
        }
        // Once in a while the host compacts on its own account.
        if self.world.numbers().once_in(16) {
            self.compact(Brief::from(self.world.window() / 2), summaries, false).await?;
        }
        let clock = self.world.clock(0);
        let (mut step, mut lied) = (self.compactor.before_request(clock.now()), false);
        let answer = loop {
            step = match step {
                RequestStep::Send { max_output } => {
                    let request = Request {
                        system: Arc::clone(&self.system),
                        tools: Arc::clone(&self.tools),
                        max_output,
                        ..Request::new(self.messages.clone())
                    };
                    match self.world.maybe_dropped(10, answers.complete(request)).await {
                        None => return Ok(()),
                        Some(Ok(answer)) => break answer,
                        Some(Err(error)) => match Refusal::of(&error.kind) {
                            Some(refusal) => {
                                lied |= answers.lied();
                                self.compactor.refused(clock.now(), refusal)
                            }
                            None => return Ok(()),
                        },
                    }
                }
                RequestStep::Compact(brief) => {
                    self.compact(brief, summaries, lied).await?;
                    self.compactor.before_request(clock.now())
                }
                RequestStep::GiveUp { before } => {
                    self.world.note(format_args!("loop gives up, and takes back"));
                    (self.messages, self.before) = (before.to_vec(), None);
                    self.compactor.observe(&self.messages);
                    return Ok(());
                }
                RequestStep::CannotFit { .. } | _ => {
                    self.world.note(format_args!("loop has no room, and waits"));
                    return Ok(());
                }
            };
        };
        self.messages.push(answer.message);
        self.compactor.observe(&self.messages);
        self.round += 1;
        self.world.count(|tally| tally.turns += 1);
        Ok(())
    }

    /// Adds the results of the open calls, or a text of the user. After a failed request there is
    /// nothing to add.
    fn push(&mut self) {
        let Some(last) = self.messages.last() else {
            return self.messages.push(Message::user("Read the program, part by part."));
        };
        if last.role != Role::Assistant {
            return;
        }
        let results = Read::results(last);
        self.messages.push(match results.is_empty() {
            true => Message::user(format!("Go on with round {}.", self.round)),
            false => Message::new(Role::User, results),
        });
    }

    /// Puts the vector back as it was before the last compaction, with what came since.
    fn undo(&mut self, before: Vec<Message>) {
        self.world.note(format_args!("loop undoes its last compaction"));
        self.world.count(|tally| tally.undone += 1);
        self.messages = before;
        self.compactor.observe(&self.messages);
    }

    /// Compacts, or drops that midway. After a refusal without a reason, unread results may be cut too.
    async fn compact(
        &mut self,
        brief: Brief,
        summaries: &Arc<Seat>,
        lied: bool,
    ) -> Result<(), Fault> {
        let clock = self.world.clock(0);
        let (conversation, clock) = (Some(summaries.as_ref() as &dyn Model), Some(&*clock));
        let models = Models { conversation, clock, ..Models::default() };
        let before = self.messages.clone();
        let unread = before.get(legality::unread_from(&before)..).unwrap_or_default().to_vec();
        let compacted = self.compactor.compact(&mut self.messages, brief, models);
        let done = self.world.maybe_dropped(8, compacted).await;
        let Some(Ok(record)) = done else {
            self.world.note(format_args!("loop compacts nothing: {done:.200?}"));
            if self.messages != before {
                let what = "a compaction that came to nothing changed the vector";
                return Err(Promise::Kept.broken(what));
            }
            self.world.count(|tally| tally.failed += 1);
            self.compactor.observe(&self.messages);
            return Ok(());
        };
        self.world.count(|tally| tally.compactions += 1);
        self.world.note(format_args!("loop compacts with {}: {}", record.strategy, record.report));
        if self.compactor.rules().active().all(|rule| rule.text != *RULE) {
            return Err(Promise::Ruled.broken("the compactor lost its rule"));
        }
        if !lied && !self.messages.ends_with(&unread) && fits(&self.world, &unread) {
            return Err(Promise::Unread.broken(format!("{unread:.300?}")));
        }
        self.before = Some(before);
        Ok(())
    }
}

/// Whether unread messages leave room for a system prompt, tools and a short account.
fn fits(world: &World, unread: &[Message]) -> bool {
    use threadfold::{TokenCounter, tokens::ByteEstimate};
    ByteEstimate::TRIGGER.messages(unread) < world.window() / 2
}
