//! The decisions about a request before it is sent, and after a refusal.

use std::sync::Arc;

use hyper::body::Bytes;
use threadfold::{
    ContextWindow, WireFormat,
    auto::AutoCompactor,
    message::ModelErrorKind,
    model::{Clock, std_clock},
    wire::{DecodeOptions, EncodeOptions},
};

use crate::relay::{Chain, Link, Relay, RelayOptions, RelayStep};
use tokio::sync::Mutex;

use super::{
    answer::OnCount,
    compaction::{Compacted, Work},
    endpoint::{Asked, Head},
    server::Proxy,
    threads::Known,
    trouble::Trouble,
    views::{About, Row},
};
use crate::{input::Dialect, terminal::thousands};

/// A request in progress, whose thread is known.
pub(super) struct Journey {
    dialect: Dialect,
    model: String,
    window: Option<ContextWindow>,
    relay: Relay,
    chain: Chain,
    root: Link,
    found: Option<Arc<Row>>,
    auto: AutoCompactor,
    lock: Arc<Mutex<()>>,
}

impl Proxy {
    /// Whether a body is certainly too short to need a compaction: a token has at least two bytes.
    /// Images have a few thousand tokens each, and many more bytes.
    pub(super) fn is_short(&self, head: &Head<'_>, body: &Bytes) -> bool {
        let model = head.model.as_deref().unwrap_or_default();
        match self.window(model) {
            // Without a window only a refusal leads to a compaction.
            None => self.views.is_empty(),
            Some(window) => {
                let room = window.tokens().saturating_sub(head.max_output());
                let tokens = body.len() as u64 / 2;
                tokens < self.threshold(room)
            }
        }
    }

    /// Reads a body, finds its view, and compacts the thread if its trigger fires.
    pub(super) async fn begin(
        &self,
        asked: &Asked,
        body: &[u8],
        compacts: bool,
    ) -> Result<Option<Journey>, Trouble> {
        let dialect = asked.dialect;
        let head = Head::read(body, asked.model.as_deref())?;
        if !head.is_whole() {
            return Ok(None);
        }
        super::body::check(body)?;
        let model = head.model.as_deref().unwrap_or_default().to_owned();
        let format = dialect;
        let request = format.decode_slice(body, &DecodeOptions::default())?;
        let chain = Chain::of(format.name(), &request.messages);
        let Some(root) = chain.after(1) else { return Ok(None) };
        let Known { mut auto, ratio, lock } = self.threads.known(root, &self.fresh);
        let found = self.views.find(&chain);
        let window = self.window(&model);
        let options = RelayOptions { window, ratio };
        let view = found.as_ref().map(|row| &row.view);
        let relay = Relay::new(request, view, &options, &mut auto, std_clock().now());
        let mut journey = Journey { dialect, model, window, relay, chain, root, found, auto, lock };
        if compacts {
            self.go_on(&mut journey).await;
        }
        Ok(Some(journey))
    }

    /// Takes a refusal, and compacts the thread if the request was too long. Returns whether to
    /// send again.
    pub(super) async fn refused(&self, journey: &mut Journey, error: &ModelErrorKind) -> bool {
        journey.relay.refused(error, &mut journey.auto, std_clock().now());
        self.go_on(journey).await;
        *journey.relay.step() == RelayStep::Send
    }

    /// Compacts as long as the relay requests it.
    async fn go_on(&self, journey: &mut Journey) {
        while let RelayStep::Compact { .. } = journey.relay.step() {
            if self.options.shadow {
                let tokens = thousands(journey.relay.tokens());
                self.note(&format!("would compact a thread of about {tokens} tokens"));
                journey.relay.failed(&mut journey.auto, std_clock().now());
                break;
            }
            if let Err(failure) = self.compact(journey).await {
                self.note(&format!("not compacted: {failure}"));
                journey.relay.failed(&mut journey.auto, std_clock().now());
            }
        }
        self.threads.remember(journey.root, &journey.auto, journey.relay.ratio());
    }

    async fn compact(&self, journey: &mut Journey) -> Result<(), Trouble> {
        let lock = Arc::clone(&journey.lock);
        let _one_at_a_time = lock.lock().await;
        let newest = self.views.find(&journey.chain);
        let covered = journey.found.as_ref().map_or(0, |row| row.view.covers);
        if let Some(row) = newest.filter(|row| row.view.covers > covered) {
            // Another request of the same thread has compacted it in the meantime.
            journey.relay.compacted(&row.view, &mut journey.auto, std_clock().now());
            journey.found = Some(row);
            return Ok(());
        }
        let RelayStep::Compact { reason, target } = journey.relay.step().clone() else {
            return Ok(());
        };
        let work = Work {
            request: journey.relay.original(),
            found: journey.found.as_deref(),
            reason,
            target,
            window: journey.window.map(|window| {
                ContextWindow::new(journey.relay.ratio().scale_down(window.tokens()))
            }),
            strategy: self.options.strategy.as_ref(),
            model: self.options.model.as_deref(),
            store: &self.store,
        };
        let compacted = tokio::time::timeout(self.options.patience, work.run());
        let compacted = compacted.await.map_err(|_| "the compaction took too long")??;
        let thread = compacted.thread.clone();
        self.keep(journey, compacted)?;
        self.limit_folder(&thread).await;
        Ok(())
    }

    /// Stores the view, or keeps it in memory if that fails.
    fn keep(&self, journey: &mut Journey, compacted: Compacted) -> Result<(), Trouble> {
        let Compacted { view, thread, events, at, before, after, unstored } = compacted;
        let link = journey.chain.after(view.covers).ok_or("the view replaces no message")?;
        let (old, new) = (thousands(before), thousands(after));
        self.note(&format!("thread {thread}: about {old} to {new} tokens"));
        if let Some(error) = unstored {
            self.note(&format!("thread {thread} is in memory only: {}", Trouble::from(error)));
        }
        let (dialect, model) = (journey.dialect.name().to_owned(), journey.model.clone());
        let about = About { thread, events, at, dialect, model, before, after };
        let parent = journey.found.as_ref().map(|row| row.link);
        if let Err(error) = self.views.insert(Row { link, view, about }, parent) {
            self.note(&format!("a view is in memory only: {error}"));
        }
        let row = self.views.find(&journey.chain).ok_or("the view is not found again")?;
        journey.relay.compacted(&row.view, &mut journey.auto, std_clock().now());
        journey.found = Some(row);
        Ok(())
    }

    fn window(&self, model: &str) -> Option<ContextWindow> {
        self.options.window.map(ContextWindow::new).or_else(|| ContextWindow::for_model(model))
    }
}

impl Journey {
    /// Returns the function that corrects the thread's estimates by the provider's count.
    pub(super) fn on_count(&self, proxy: &Arc<Proxy>) -> OnCount {
        let (proxy, root, estimated) = (Arc::clone(proxy), self.root, self.relay.estimate());
        Box::new(move |reported| proxy.threads.learn(root, estimated, reported))
    }

    /// The body to send; `None` to send the original one.
    pub(super) fn body(&self) -> Option<Bytes> {
        let request = self.relay.request()?;
        let options = EncodeOptions { model: None, ..EncodeOptions::for_model(&self.model) };
        let encoded = self.dialect.encode(&request, &options);
        Some(Bytes::from(encoded.body.as_str().to_owned()))
    }
}
