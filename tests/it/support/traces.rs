//! A subscriber that records spans and events as text.

use std::{
    fmt,
    sync::{Arc, Mutex, Once},
};

use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
    subscriber::Interest,
};

/// Runs `work` with this subscriber on this thread.
///
/// Tests run on several threads. A callsite that is first reached on a thread without a subscriber
/// would be cached as disabled, so a global subscriber makes tracing ask each time.
pub(crate) fn with<S, T>(subscriber: S, work: impl FnOnce() -> T) -> T
where
    S: Subscriber + Send + Sync + 'static,
{
    static GLOBAL: Once = Once::new();
    GLOBAL.call_once(|| tracing::subscriber::set_global_default(Quiet).unwrap());
    tracing::subscriber::with_default(subscriber, work)
}

/// Records nothing, and is asked each time.
struct Quiet;

impl Subscriber for Quiet {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, _: &Metadata<'_>) -> bool {
        false
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The lines of a trace: names, targets, fields and their values, of spans and events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traces(Arc<Mutex<Vec<String>>>);

struct Values<'a>(&'a mut Vec<String>);

impl Visit for Values<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push(format!("{field} = {value:?}"));
    }
}

impl Traces {
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    fn name(&self, metadata: &Metadata<'_>) {
        self.0.lock().unwrap().push(format!("{} of {}", metadata.name(), metadata.target()));
    }
}

impl Subscriber for Traces {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        self.name(attributes.metadata());
        let lines = &mut self.0.lock().unwrap();
        attributes.record(&mut Values(lines));
        Id::from_u64(lines.len() as u64)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut Values(&mut self.0.lock().unwrap()));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.name(event.metadata());
        event.record(&mut Values(&mut self.0.lock().unwrap()));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
