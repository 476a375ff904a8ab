//! The decisions about a request before it is sent, and after a refusal.

use std::sync::Arc;

use hyper::body::Bytes;
use serde_json::{Value, json};
use threadfold::{
    ContextWindow, Request, TokenCounter,
    auto::{AutoCompactor, IdleStep, Pressure},
    drive::Models,
    message::{Extra, Json, Message, ModelErrorKind, Role, ThreadId, Timestamp},
    store::ThreadStore,
    wire::{DecodeOptions, Dialect, EncodeOptions, recognised},
};
use threadfold_terminal::thousands;

use crate::relay::{
    Chain, Link, Relay, RelayStep,
    compaction::{Compacted, FailedModel, Left, Work},
    passing_from,
};
use tokio::sync::Mutex;

use super::{
    endpoint::{Arrived, Head},
    keep::Impatient,
    lock::locked,
    quiet,
    state::Proxy,
    threads::{Key, Known},
    trouble::{self, Trouble},
    unstored::Made,
    views::{About, Row},
};
use crate::words::first_words;

/// A request in progress, whose thread is known.
pub(super) struct Exchange {
    dialect: Dialect,
    client: String,
    model: String,
    window: Option<ContextWindow>,
    relay: Relay,
    chain: Chain,
    key: Key,
    found: Option<Arc<Row>>,
    lock: Arc<Mutex<()>>,
    /// A compaction for a refusal, before the provider accepts the request.
    unkept: Option<Made>,
    /// The messages before those that the agent wrote for this request alone. The first compaction
    /// is theirs, and any further one that of all messages.
    passing_from: Option<usize>,
    /// The number of the watch of a quiet thread; `None` for a request.
    watch: Option<u64>,
}

/// Why a request is read.
pub(super) enum Attempt {
    /// When it arrives.
    First,
    /// When it arrives, to be counted. Its thread may stay quiet.
    CountTokens,
    /// While its thread is quiet.
    Idle {
        /// The number of the watch.
        number: u64,
    },
    /// After a refusal, with what stayed of it; `None` if it was sent unread.
    AfterRefusal(Option<Box<Waiting>>),
}

/// What stays in memory of a refused request while it is sent again. It is kept once the provider
/// accepts the request, and dropped otherwise.
pub(super) struct Waiting {
    pub(super) key: Key,
    lock: Arc<Mutex<()>>,
    model: String,
    window: Option<ContextWindow>,
    auto: AutoCompactor,
    found: Option<Arc<Row>>,
    unkept: Option<Made>,
    pub(super) was_refused: bool,
    /// The first messages whose reasoning was left out: how many, and the link of the last one.
    pub(super) void: Option<(usize, Link)>,
    /// Whether it was sent with a view, or with less room for its answer.
    pub(super) is_shortened: bool,
    /// The tokens of the request that was sent, by the estimate, and those that its view left out.
    tokens: u64,
    spared: u64,
}

/// The messages before those that an agent wrote for one request alone get at least the target divided
/// by this.
const LEAST_SHARE: u64 = 4;

/// The length of the first words of a thread, in characters.
const MAX_WORDS: usize = 120;

impl Proxy {
    /// Whether a body is certainly too short to need a compaction: a token has at least two bytes.
    /// Images have a few thousand tokens each, and many more bytes.
    pub(super) fn is_short(&self, upstream: &str, head: &Head<'_>, body: &Bytes) -> bool {
        // A thread is sent as its view, and without reasoning that was refused, however short.
        let may_change = !self.views.is_empty() || self.threads.refused_any_reasoning();
        if may_change && !self.options.shadow {
            return false;
        }
        let model = head.model.as_deref().unwrap_or_default();
        match self.window(upstream, model) {
            // Without a window only a refusal leads to a compaction.
            None => true,
            Some(window) => {
                let room = window.tokens().saturating_sub(head.max_output());
                let tokens = body.len() as u64 / 2;
                tokens < self.threshold(model, room)
            }
        }
    }

    /// Reads a body, and finds its view. `None` if the body is sent as it came.
    pub(super) fn begin(
        &self,
        arrived: &Arrived,
        attempt: Attempt,
    ) -> Result<Option<Exchange>, Trouble> {
        let Arrived { asked, upstream, body } = arrived;
        let dialect = asked.dialect;
        let head = Head::read(body, asked.model.as_deref())?;
        if head.kept_by_provider().is_some() {
            return Ok(None);
        }
        super::body::check(body)?;
        let model = head.model.as_deref().unwrap_or_default().to_owned();
        let (format, client) = (dialect, asked.client.clone());
        let mut request = format.decode_slice(body, &DecodeOptions::default())?;
        let chain = Chain::of(format.name(), &request.messages);
        // Links are those of the body: what is recognised depends on the messages that follow.
        if let Some(messages) = recognised(&request.messages) {
            request.messages = messages.into();
        }
        let Some(root) = chain.after(1) else { return Ok(None) };
        if let Attempt::First = attempt {
            self.quiet.went_on(root);
        }
        let key = Key::new(root, upstream, &model);
        let known = self.threads.known(key, &self.fresh);
        let mut passing = None;
        if let Attempt::First = attempt {
            passing = known.shared_with(&chain).and_then(|it| passing_from(&request.messages, it));
        }
        let Known { mut auto, lock, .. } = known;
        let policy = self.policy_for(&model, body);
        if *auto.policy() != policy {
            auto.set_policy(policy).map_err(|error| Trouble::new(error.to_string()))?;
        }
        let window = self.window(upstream, &model);
        let view = || match self.options.shadow {
            true => None,
            false => self.view_of(&chain, &request.messages),
        };
        let found;
        let (mut unkept, mut watch) = (None, None);
        let mut void = self.threads.void_reasoning(key, &chain);
        let mut relay = match attempt {
            Attempt::First | Attempt::CountTokens => {
                found = view();
                let view = found.as_ref().map(|row| &row.view);
                Relay::new(request, view, window, auto, self.clock.now())
            }
            Attempt::Idle { number } => {
                watch = Some(number);
                found = view();
                Relay::sent(request, found.as_ref().map(|row| &row.view), window, auto)
            }
            Attempt::AfterRefusal(None) => {
                // Sent as it came, also if another request has made a view meanwhile.
                (found, void) = (None, 0);
                auto.next_request();
                Relay::sent(request, None, window, auto)
            }
            Attempt::AfterRefusal(Some(waiting)) => {
                let Waiting { auto, .. } = *waiting;
                (found, unkept) = (waiting.found, waiting.unkept);
                void = waiting.void.map_or(0, |(count, _)| count);
                Relay::sent(request, found.as_ref().map(|row| &row.view), window, auto)
            }
        };
        relay.leave_out_reasoning(void);
        Ok(Some(Exchange {
            dialect,
            client,
            model,
            window,
            relay,
            chain,
            key,
            found,
            lock,
            unkept,
            passing_from: passing,
            watch,
        }))
    }

    /// Whether the thread is compacted before it is sent.
    pub(super) fn is_due(&self, exchange: &Exchange) -> bool {
        let is_due = matches!(exchange.relay.step(), RelayStep::Compact { .. });
        is_due && !self.options.shadow
    }

    /// Takes a refusal, and compacts the thread if the request was too long. Returns whether to
    /// send again.
    pub(super) async fn refused(
        self: &Arc<Self>,
        exchange: &mut Exchange,
        error: &ModelErrorKind,
    ) -> bool {
        exchange.relay.refused(error, self.clock.now());
        self.go_on(exchange).await;
        *exchange.relay.step() == RelayStep::Send
    }

    /// Compacts as long as the relay requests it. The lock of the thread is held then.
    pub(super) async fn go_on(self: &Arc<Self>, exchange: &mut Exchange) {
        // A request that is due is read twice, so it is remembered here.
        self.threads.came(exchange.key.root, &exchange.chain);
        let mut was_tried = false;
        while let RelayStep::Compact { .. } = exchange.relay.step() {
            was_tried = true;
            if self.options.shadow {
                let tokens = thousands(exchange.relay.tokens());
                self.note(&format!("would compact a thread of about {tokens} tokens"));
                // Nothing failed, so the trigger of the thread does not learn of it.
                return exchange.relay.failed(self.clock.now());
            }
            if let Err(failure) = self.compact(exchange).await {
                self.note(&format!("not compacted: {failure}"));
                exchange.relay.failed(self.clock.now());
            }
        }
        // A compaction that failed has its own line.
        let is_silent = !was_tried || *exchange.relay.step() == RelayStep::Refused;
        let why = exchange.relay.why_not_compacted();
        if let Some(why) = why.filter(|_| is_silent) {
            self.note(&format!("not compacted: {why}"));
        }
        // What a refusal taught is remembered once the provider accepts the request.
        if !exchange.relay.was_refused() && exchange.unkept.is_none() {
            self.threads.remember(exchange.key, exchange.relay.auto());
        }
    }

    /// Keeps what the refusals of a request led to, because the provider has accepted it now.
    pub(super) async fn accepted(
        self: &Arc<Self>,
        upstream: &str,
        waiting: Waiting,
    ) -> Result<(), Trouble> {
        let Waiting { key, model, window, auto, unkept, tokens, .. } = waiting;
        self.threads.remember(key, &auto);
        // Only what a refusal stated, and what this accepted request does not contradict.
        let stated = auto.stated_window(window);
        if let Some(learnt) = stated.filter(|learnt| tokens / 4 <= learnt.tokens()) {
            let now = thousands(learnt.tokens());
            let before = window.map_or_else(
                || "no window was known".to_owned(),
                |before| format!("{} were assumed", thousands(before.tokens())),
            );
            self.note(&format!("the provider states a window of {now} tokens; {before}"));
            self.views.learn_window(upstream, &model, learnt.tokens());
        }
        match unkept {
            Some(made) => self.keep(made).await,
            None => self.store_soon().await,
        }
        Ok(())
    }

    /// Compacts the thread, whose lock is held.
    async fn compact(self: &Arc<Self>, exchange: &mut Exchange) -> Result<(), Trouble> {
        let newest = self.view_of(&exchange.chain, &exchange.relay.original().messages);
        let covered = exchange.found.as_ref().map_or(0, |row| row.view.covers);
        if let Some(row) = newest.filter(|row| row.view.covers > covered) {
            // Another request of the same thread has compacted it in the meantime.
            exchange.relay.compacted(&row.view, self.clock.now());
            // What was compacted for a refusal has another log than this view.
            (exchange.found, exchange.unkept) = (Some(row), None);
            return Ok(());
        }
        let RelayStep::Compact { reason, target, limit } = exchange.relay.step().clone() else {
            return Ok(());
        };
        let ratio = exchange.relay.auto().ratio();
        let least = target.unwrap_or_default() / LEAST_SHARE;
        let (count, beside) = exchange.compacted_messages(least, limit);
        let room = |tokens: u64| tokens.saturating_sub(beside);
        let request = exchange.relay.original();
        let found = exchange.found.as_deref();
        let unkept = exchange.unkept.as_ref().map(|made| made.journal.clone());
        let waits = || self.unstored.journal(&found?.about.thread);
        let store: Arc<dyn ThreadStore> = Arc::new(Impatient(Arc::clone(&self.store)));
        let work = Work {
            request,
            messages: count,
            found: found.map(Row::found),
            reason,
            now: self.clock.now(),
            target: target.map(|target| room(target).max(least)),
            limit: limit.map(room),
            // Targets and limit are for this window too, which refusals may have made smaller.
            window: exchange
                .relay
                .auto()
                .window(exchange.window)
                .map(|window| ContextWindow::new(room(ratio.unscale(window.tokens())))),
            strategy: self.options.strategy.as_ref(),
            models: Models { conversation: self.options.model.as_deref(), ..Models::default() },
            id: ThreadId::random(),
            store: &store,
            unstored: unkept.or_else(waits),
        };
        let compacted = tokio::time::timeout(self.options.patience, work.run());
        let mut compacted = compacted.await.map_err(|_| "the compaction took too long")??;
        exchange.passing_from = None;
        compacted.before = compacted.before.saturating_add(beside);
        compacted.after = compacted.after.saturating_add(beside);
        if let Some(number) = exchange.watch
            && !self.quiet.end(exchange.key.root, number)
        {
            return Err("its thread went on".into());
        }
        self.take(exchange, compacted).await
    }

    /// Compacts a quiet thread. What was prepared is dropped if the thread goes on meanwhile.
    pub(super) async fn compact_quiet(self: &Arc<Self>, exchange: &mut Exchange) {
        exchange.relay.compact_idle();
        if self.options.shadow {
            let tokens = thousands(exchange.relay.tokens());
            self.note(&format!("would compact a quiet thread of about {tokens} tokens"));
            return;
        }
        let lock = exchange.lock();
        let _one_at_a_time = lock.lock().await;
        let done = self.compact(exchange).await;
        let goes_on = match &done {
            Ok(()) => false,
            Err(failure) => {
                self.note(&format!("a quiet thread is not compacted: {failure}"));
                exchange.relay.failed(self.clock.now());
                !exchange.watch.is_some_and(|it| self.quiet.is_watching(exchange.key.root, it))
            }
        };
        if !goes_on {
            self.threads.remember(exchange.key, exchange.relay.auto());
        }
    }

    /// Records that the last request of a quiet thread was sent again. Returns when to decide again;
    /// `None` if the thread went on meanwhile, or nothing pays any more.
    pub(super) fn kept_alive(&self, exchange: &mut Exchange, at: Timestamp) -> Option<Timestamp> {
        exchange.watch.filter(|number| self.quiet.is_watching(exchange.key.root, *number))?;
        exchange.relay.kept_alive(at);
        self.threads.remember(exchange.key, exchange.relay.auto());
        match exchange.idle(at) {
            IdleStep::Wait { ms } => Some(Timestamp(at.0.saturating_add(ms))),
            IdleStep::KeepAlive | IdleStep::Compact | IdleStep::LetGo | _ => None,
        }
    }

    /// Takes a compaction into the request. That for a refusal is kept once the provider accepts it.
    async fn take(
        self: &Arc<Self>,
        exchange: &mut Exchange,
        compacted: Compacted,
    ) -> Result<(), Trouble> {
        let Compacted { view, thread, events, at, before, after, failed, left, journal } =
            compacted;
        let link = exchange.chain.after(view.covers).ok_or("the view replaces no message")?;
        locked(&self.tally).compactions += 1;
        let (old, new) = (thousands(before), thousands(after));
        if let Some(FailedModel { strategy, error, instead }) = failed {
            let why = error.as_ref().map(|error| format!(" ({})", trouble::kind(error)));
            self.note(&format!("{strategy} failed{}: {instead} instead", why.unwrap_or_default()));
        }
        if let Some((left, row)) = left.zip(exchange.found.as_ref()) {
            let old = &row.about.thread;
            let why = match left {
                Left::Gone => "is gone".to_owned(),
                Left::Other => "has other messages than its view".to_owned(),
                Left::Unread(error) => format!("is not read: {}", Trouble::from(error)),
            };
            self.note(&format!("the log of thread {old} {why}; it begins anew as {thread}"));
        }
        self.note(&format!("thread {thread}: about {old} to {new} tokens"));
        let (client, model) = (exchange.client.clone(), exchange.model.clone());
        let window = exchange.window.map(ContextWindow::tokens);
        let words = first_words(exchange.relay.original().messages.iter(), MAX_WORDS);
        let about = About { thread, events, at, client, model, window, words, before, after };
        let parent = exchange.found.as_ref().map(|row| row.link);
        let row = Arc::new(Row { link, view, about });
        let mut made = Made { row: Arc::clone(&row), journal, parent };
        if exchange.relay.was_refused() {
            // An earlier view of this request was not kept either.
            made.parent = exchange.unkept.take().map_or(parent, |unkept| unkept.parent);
            exchange.unkept = Some(made);
        } else {
            self.keep(made).await;
        }
        exchange.relay.compacted(&row.view, self.clock.now());
        exchange.found = Some(row);
        Ok(())
    }

    fn view_of(&self, chain: &Chain, thread: &[Message]) -> Option<Arc<Row>> {
        self.views.find(chain, thread, |why| self.note(&format!("a view is not read: {why}")))
    }

    /// The window of a model: the one that a refusal of this upstream stated, if it is smaller than
    /// the one of the options or the table.
    fn window(&self, upstream: &str, model: &str) -> Option<ContextWindow> {
        let learnt = self.views.window(upstream, model).map(ContextWindow::new);
        let assumed = self.options.window.map(ContextWindow::new);
        let assumed = assumed.or_else(|| ContextWindow::for_model(model));
        [learnt, assumed].into_iter().flatten().min()
    }
}

impl Waiting {
    /// The lock of the thread, to hold while it is compacted.
    pub(super) fn lock(&self) -> Arc<Mutex<()>> {
        Arc::clone(&self.lock)
    }

    /// The agent's own request, without the reasoning that the provider refuses; `None` if that is
    /// the request as it came.
    pub(super) fn own(self) -> Option<Self> {
        self.void.is_some().then_some(Self { found: None, unkept: None, ..self })
    }

    /// The thread whose view was sent, and the tokens that it left out; `None` if the request was
    /// sent with all of its messages.
    pub(super) fn saved(&self) -> Option<(ThreadId, u64)> {
        let row = self.found.as_ref().filter(|_| self.spared > 0)?;
        Some((row.about.thread.clone(), self.spared))
    }
}

impl Exchange {
    /// The number of messages that are compacted, and the tokens of the others, by the counter of the
    /// ratio. All are compacted unless the agent wrote the last ones for this request alone, and they
    /// leave the others the tokens `least` below the limit.
    fn compacted_messages(&self, least: u64, limit: Option<u64>) -> (usize, u64) {
        let messages = &self.relay.original().messages;
        let covered = self.found.as_ref().map_or(0, |row| row.view.covers);
        let is_possible = |count: &usize| !self.relay.was_refused() && *count > covered;
        if let Some(count) = self.passing_from.filter(is_possible) {
            let passing = messages.get(count..).unwrap_or_default();
            let tokens = self.relay.auto().ratio().base().messages(passing);
            if limit.is_none_or(|limit| tokens.saturating_add(least) <= limit) {
                return (count, tokens);
            }
        }
        (messages.len(), 0)
    }

    /// The lock of the thread, to hold while it is compacted.
    pub(super) fn lock(&self) -> Arc<Mutex<()>> {
        Arc::clone(&self.lock)
    }

    /// By which the thread and its model are known.
    pub(super) fn key(&self) -> Key {
        self.key
    }

    pub(super) fn model(&self) -> &str {
        &self.model
    }

    /// The tokens of the request, by the estimate that the provider's counts correct.
    pub(super) fn estimate(&self) -> u64 {
        self.relay.estimate()
    }

    /// The tokens of the request, as the provider would count them.
    pub(super) fn tokens(&self) -> u64 {
        self.relay.tokens()
    }

    pub(super) fn pressure(&self) -> Pressure {
        self.relay.pressure()
    }

    /// What to do for the provider's cache of the request.
    pub(super) fn idle(&self, now: Timestamp) -> IdleStep {
        self.relay.auto().idle(now, self.relay.pressure())
    }

    /// The request that keeps the provider's cache alive, if one can.
    pub(super) fn kept_alive(&self) -> Option<Request> {
        quiet::keep_alive(self.relay.request().unwrap_or_else(|| self.relay.original().clone()))
    }

    /// What stays of the exchange while the request is sent.
    pub(super) fn waiting(self) -> Waiting {
        // What was compacted for a refusal waits to be kept, whatever was refused after it.
        let was_refused = self.relay.was_refused() || self.unkept.is_some();
        let (count, tokens) = (self.relay.without_reasoning(), self.relay.tokens());
        let void = self.chain.after(count).map(|link| (count, link));
        let (is_shortened, spared) = (self.is_shortened(), self.relay.spared());
        let Self { key, lock, model, window, relay, found, unkept, .. } = self;
        Waiting {
            key,
            lock,
            model,
            window,
            auto: relay.into_auto(),
            found,
            unkept,
            was_refused,
            void,
            is_shortened,
            tokens,
            spared,
        }
    }

    /// Whether the request is sent with a view, or with less room for its answer.
    pub(super) fn is_shortened(&self) -> bool {
        self.relay.is_shortened()
    }

    /// The body to send; `None` to send the original one.
    pub(super) fn body(&self) -> Option<Bytes> {
        let mut request = self.relay.request()?;
        if request.max_output < self.relay.original().max_output {
            fit_thinking(&mut request);
        }
        Some(self.encoded(&request))
    }

    /// The body of a request in place of the agent's.
    pub(super) fn encoded(&self, request: &Request) -> Bytes {
        let options = EncodeOptions::for_model(&self.model);
        // What the agent sends last stays last, whether the model accepts it or not.
        let last = self.relay.original().messages.last();
        let is_prefill = last.is_some_and(|last| last.role == Role::Assistant);
        let accepts_prefill = options.accepts_prefill || is_prefill;
        let binds_reasoning = options.binds_reasoning || self.relay.is_without_reasoning();
        let options = EncodeOptions { model: None, accepts_prefill, binds_reasoning, ..options };
        Bytes::from(self.dialect.encode(request, &options).body.as_str().to_owned())
    }
}

/// Lowers the budget for reasoning below a lowered `max_tokens`, because Anthropic refuses a larger
/// one; reasoning ends if not even the smallest budget is left.
fn fit_thinking(request: &mut Request) {
    const LEAST: u64 = 1_024;
    let (codec, key, budget) = (Dialect::Anthropic.name(), "thinking", "budget_tokens");
    let Some(most) = request.max_output else { return };
    let thinking = request.extra.get(codec, key).and_then(|thinking| thinking.to_value().ok());
    let Some(mut thinking) = thinking else { return };
    if thinking.get(budget).and_then(Value::as_u64).is_none_or(|budget| budget < most) {
        return;
    }
    match thinking.as_object_mut().filter(|_| most > LEAST) {
        Some(fields) => drop(fields.insert(budget.to_owned(), json!(most - 1))),
        None => thinking = json!({"type": "disabled"}),
    }
    let fields = request.extra.of(codec).filter(|(name, _)| *name != key);
    let fields = fields.map(|(name, json)| (name.to_owned(), json.clone()));
    let fitted = (key.to_owned(), Json::from(&thinking));
    request.extra = Extra::new(codec, fields.chain([fitted]).collect::<Vec<_>>());
}

#[cfg(test)]
mod tests {
    use super::*;
    use threadfold::Message;

    #[test]
    fn the_budget_for_reasoning_is_below_a_lowered_limit() {
        let codec = Dialect::Anthropic.name();
        let fitted = |most, thinking: Value| {
            let extra = Extra::new(codec, vec![("thinking", Json::from(&thinking))]);
            let mut request = Request {
                max_output: Some(most),
                extra,
                ..Request::new(vec![Message::user("Hi.")])
            };
            fit_thinking(&mut request);
            request.extra.get(codec, "thinking").unwrap().to_value().unwrap()
        };
        let enabled = |budget: u64| json!({"type": "enabled", "budget_tokens": budget});
        assert_eq!(fitted(5_000, enabled(6_000)), enabled(4_999));
        assert_eq!(fitted(5_000, enabled(4_999)), enabled(4_999));
        assert_eq!(fitted(1_000, enabled(6_000)), json!({"type": "disabled"}));
        assert_eq!(fitted(5_000, json!({"type": "adaptive"})), json!({"type": "adaptive"}));
    }
}
