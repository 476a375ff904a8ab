//! The provider of a simulated world: a rulebook, a script, and what networks do wrong.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use serde_json::{Map, Value};
use threadfold::{
    Answer, ContextWindow, Model, Request,
    message::{Delta, ModelError, ModelErrorKind},
    model,
    store::Lease,
    wire::{Dialect, EncodeOptions},
};

use super::{
    agent::{extracted, worked},
    clock::WorldClock,
    core::Core,
    fault::{Fault, Promise},
    judge,
};
use crate::rulebook::{BookOptions, Outcome, Rulebook, RulebookModel};

/// One in this many answers fails, breaks off, or is refused without a reason.
const FAILS: u64 = 30;

/// One in this many answers takes longer than a lease lives.
const SLOW: u64 = 12;

/// A request may be over the window by this share of it, because sizes are estimated. The provider
/// then refuses it, and the library makes room.
const MISJUDGED: u64 = 20;

/// The rule that thinking stays behind the messages that it followed.
const BINDING: &str = "binding";

/// A vendor's API with a model.
#[derive(Clone)]
pub struct Vendor {
    /// The dialect of the API.
    pub dialect: Dialect,
    /// The name of the model.
    pub model: &'static str,
    /// What a client adds to every body.
    pub fields: Map<String, Value>,
}

/// The provider of a world.
pub(super) struct Provider {
    pub(super) core: Arc<Core>,
    pub(super) vendor: Vendor,
    /// The window of the model, in tokens.
    pub(super) window: u64,
    book: Arc<Mutex<Rulebook>>,
    answers: Mutex<u64>,
}

/// Who asks.
#[derive(Clone, Debug)]
pub struct Asker {
    /// The name in the record.
    pub name: &'static str,
    /// What it asks for.
    pub asks: Asks,
    /// The rules that hold for it.
    pub rules: Vec<&'static str>,
    /// Its log and lease, if the log has the very messages of its requests.
    pub lease: Option<Lease>,
}

/// What an asker asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// Answers; summaries if the request limits its answer, as sessions do.
    Both,
    /// Answers.
    Answers,
    /// Answers, for a relay: it sends a request whose compaction failed as it is.
    Relayed,
    /// Summaries.
    Summaries,
}

/// The model as one asker sees it.
pub(super) struct Seat {
    provider: Arc<Provider>,
    asker: Asker,
    answers: RulebookModel,
    summaries: RulebookModel,
    lied: Mutex<bool>,
}

impl Provider {
    pub(super) fn new(core: Arc<Core>, vendor: Vendor, window: u64, seed: u64) -> Self {
        let options = BookOptions { window, seed, ..BookOptions::default() };
        let book = Arc::new(Mutex::new(Rulebook::new(vendor.dialect, options)));
        Self { core, vendor, window, book, answers: Mutex::new(0) }
    }

    pub(super) fn seat(self: &Arc<Self>, asker: Asker) -> Seat {
        let model = |says: Box<dyn Fn(&Request) -> _ + Send + Sync>| {
            let Vendor { model, fields, .. } = self.vendor.clone();
            let clock = Arc::new(WorldClock::new(&self.core, 0));
            RulebookModel::new(Arc::clone(&self.book), model, clock, says).with_fields(fields)
        };
        let provider = Arc::clone(self);
        let answers = model(Box::new(move |_| {
            let number = {
                let mut answers = locked(&provider.answers);
                *answers += 1;
                *answers
            };
            // Up to a tenth of the window, and sometimes more than what is left of it.
            let sizes = [provider.window * 4 / 10, provider.window * 2];
            worked(&provider.core.numbers, number, sizes, false)
        }));
        let summaries = model(Box::new(extracted));
        Seat { provider: Arc::clone(self), asker, answers, summaries, lied: Mutex::new(false) }
    }
}

impl Seat {
    /// Whether an answer was refused without a reason since the last call.
    pub(super) fn lied(&self) -> bool {
        std::mem::take(&mut *locked(&self.lied))
    }

    fn is_summary(&self, request: &Request) -> bool {
        match self.asker.asks {
            Asks::Both => request.max_output.is_some(),
            Asks::Answers | Asks::Relayed => false,
            Asks::Summaries => true,
        }
    }

    /// Answers a request, after the judge saw it.
    async fn pieces(&self, request: Request) -> Vec<Result<Delta, ModelError>> {
        let Provider { core, .. } = self.provider.as_ref();
        let for_summary = self.is_summary(&request);
        if let Err(fault) = self.judge(&request, for_summary) {
            core.broke(fault);
        }
        let fault = core.numbers.below(FAILS * 4);
        if fault < 4 {
            core.count(|tally| tally.model_failures += 1);
        }
        match fault {
            0 => {
                core.note(format_args!("the provider is overloaded"));
                let kind = ModelErrorKind::Retryable { after: None };
                return vec![Err(ModelError::new(kind, "overloaded"))];
            }
            1 => {
                core.note(format_args!("the provider fails"));
                return vec![Err(ModelError::new(ModelErrorKind::Other, "internal error"))];
            }
            2 if !for_summary => {
                core.note(format_args!("the provider refuses the length without a reason"));
                *locked(&self.lied) = true;
                let kind = ModelErrorKind::Overflow { limit: None, found: None, output: None };
                return vec![Err(ModelError::new(kind, "prompt is too long"))];
            }
            _ => {}
        }
        let model = if for_summary { &self.summaries } else { &self.answers };
        let mut pieces: Vec<_> = model.stream(request).collect().await;
        if let Err(fault) = self.verdict(model) {
            core.broke(fault);
        }
        if fault == 3 {
            core.note(format_args!("the answer breaks off"));
            pieces.pop();
        }
        if core.numbers.once_in(SLOW) {
            core.sleep(core.numbers.below(20_000)).await;
        }
        pieces
    }

    fn judge(&self, request: &Request, for_summary: bool) -> Result<(), Fault> {
        let Provider { core, vendor, .. } = self.provider.as_ref();
        let options = EncodeOptions::for_model(vendor.model);
        let encoded = vendor.dialect.encode(request, &options);
        let body = encoded.body.as_str();
        let (name, kind) = (self.asker.name, if for_summary { "a summary" } else { "an answer" });
        core.bytes(body.as_bytes());
        let (count, bytes) = (request.messages.len(), body.len());
        core.note(format_args!("{name} asks for {kind}: {count} messages, {bytes} bytes"));
        core.count(|tally| match for_summary {
            true => tally.summaries += 1,
            false => tally.requests += 1,
        });
        if for_summary {
            return judge::check(request, body, &[]);
        }
        // In a target that is too small the library counts the rules that it cannot state.
        let counts_rules = body.contains("more did not fit.)");
        core.count(|tally| tally.rules_counted += u64::from(counts_rules));
        let rules: &[&str] = if counts_rules { &[] } else { &self.asker.rules };
        judge::check(request, body, rules)?;
        let judge = core.judge();
        match self.asker.lease.as_ref().filter(|lease| judge.is_newest(lease)) {
            Some(lease) => judge.asked(&lease.thread, request),
            None => Ok(()),
        }
    }

    /// What the rulebook said to the last request.
    fn verdict(&self, model: &RulebookModel) -> Result<(), Fault> {
        let book = model.book();
        let seen = book.seen();
        match seen.last.outcome {
            // What follows a lost view is bound to it, and nobody knows that but the provider.
            Outcome::Illegal
                if self.asker.asks == Asks::Relayed
                    && self.provider.core.has_lost_view()
                    && seen.violations.last().is_some_and(|it| it.rule.name == BINDING) =>
            {
                self.provider.core.note(format_args!("reasoning is bound to a view that is lost"));
                Ok(())
            }
            Outcome::Illegal => {
                let found = seen.violations.last().map(ToString::to_string).unwrap_or_default();
                Err(Promise::Legal.broken(found))
            }
            Outcome::TooLong => {
                let (tokens, window) = (seen.last.tokens, self.provider.window);
                self.provider.core.note(format_args!("{tokens} tokens are too many"));
                self.provider.core.count(|tally| tally.misjudged += 1);
                // The provider counts otherwise than the library estimates.
                let may_be_long = self.asker.asks == Asks::Relayed;
                if may_be_long || tokens <= window + window / MISJUDGED {
                    return Ok(());
                }
                Err(Promise::Fits.broken(format!("{tokens} tokens in a window of {window}")))
            }
            Outcome::None | Outcome::Answered | Outcome::NotFound => Ok(()),
        }
    }
}

#[async_trait]
impl Model for Seat {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        model::answer_of(self.stream(request)).await
    }

    fn stream(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        let numbers = &self.provider.core.numbers;
        let answer = stream::once(async move {
            numbers.nap().await;
            stream::iter(self.pieces(request).await)
        });
        let nap = move |piece| async move {
            numbers.nap().await;
            piece
        };
        answer.flatten().then(nap).boxed()
    }

    fn binds_reasoning(&self) -> bool {
        self.answers.binds_reasoning()
    }

    fn context_window(&self) -> Option<ContextWindow> {
        Some(ContextWindow::new(self.provider.window))
    }
}

impl fmt::Debug for Vendor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.dialect.name(), self.model)
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider").field("vendor", &self.vendor).finish_non_exhaustive()
    }
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seat").field("asker", &self.asker).finish_non_exhaustive()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
