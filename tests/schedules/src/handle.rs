//! Handles in other threads, while a turn runs: queued and withdrawn texts, aborts, and readers.

use std::sync::{Arc, Mutex};

use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use shuttle::{future::block_on, thread};
use threadfold::{
    Answer, ContextWindow, Message, Model, ModelAgent, Request, Role, Session, async_trait,
    message::{Delta, ModelError},
    session::{SessionEvent, SessionHandle, UserText},
    testing::ScriptedModel,
};

use crate::{every_order, many_orders};

/// A model whose answer never begins, and which wakes nobody.
#[derive(Debug)]
struct Silent;

#[async_trait]
impl Model for Silent {
    async fn complete(&self, _: Request) -> Result<Answer, ModelError> {
        std::future::pending().await
    }

    fn stream(&self, _: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        stream::pending().boxed()
    }
}

fn session() -> Session {
    let model = ScriptedModel::repeating(["Fine."]);
    let builder = Session::builder(ModelAgent::new(Arc::new(model)));
    builder.window(ContextWindow::new(200_000)).build().unwrap()
}

/// The texts of the user in these messages, in order.
fn typed(messages: &[Message]) -> Vec<String> {
    let users = messages.iter().filter(|message| message.role == Role::User);
    users.flat_map(Message::texts).map(ToString::to_string).collect()
}

fn texts(withdrawn: Vec<UserText>) -> Vec<String> {
    withdrawn.into_iter().map(|typed| typed.text.to_string()).collect()
}

/// What a turn and its hosts left.
struct Story {
    session: Session,
    /// The events that the stream returned.
    events: Vec<SessionEvent>,
    /// The queued texts, each with whether the running turn was to take it.
    queued: Vec<(&'static str, bool)>,
    withdrawn: Vec<String>,
}

impl Story {
    fn is_aborted(&self) -> bool {
        self.events.contains(&SessionEvent::Aborted)
    }

    /// Checks that each text is in one place, and where the host expects it.
    fn check(mut self) {
        let handle = self.session.handle();
        assert!(!handle.is_busy());
        let is_aborted = self.is_aborted();
        let (sent, waiting) = (typed(&handle.messages()), texts(handle.take_queued()));
        for (text, is_taken) in &self.queued {
            let places = [&sent, &self.withdrawn, &waiting];
            let count = |texts: &Vec<String>| texts.iter().filter(|one| one == text).count();
            let counts = places.map(count);
            assert_eq!(counts.iter().sum::<usize>(), 1, "{text}: {counts:?} {:?}", self.events);
            match is_taken {
                true => assert!(counts[2] == 0 || is_aborted, "{text} was to be sent"),
                false => assert_eq!(counts[0], 0, "{text} was to wait"),
            }
        }
        for place in [&sent, &self.withdrawn, &waiting] {
            assert!(is_subsequence(place, &self.queued), "{place:?}");
        }
        // After an abort the session works on, and what waited is sent then.
        for text in &waiting {
            handle.queue(text.as_str());
        }
        block_on(async { self.session.run_queued().await }).unwrap();
        assert_eq!(typed(self.session.messages()), [sent, waiting].concat());
        assert_eq!(self.session.log().replay(), **self.session.messages());
    }
}

/// Whether the queued texts among these are in the order in which they were queued.
fn is_subsequence(texts: &[String], queued: &[(&'static str, bool)]) -> bool {
    let places = texts.iter().filter_map(|text| queued.iter().position(|(one, _)| one == text));
    places.is_sorted()
}

/// Sends a text, and meanwhile a host does this in another thread.
fn while_sending(
    queue: impl FnOnce(&SessionHandle) -> Vec<(&'static str, bool)> + Send + 'static,
    other: impl FnOnce(&SessionHandle) -> Vec<UserText> + Send + 'static,
) -> Story {
    let mut session = session();
    let (one, two) = (session.handle(), session.handle());
    let events = session.send("Hi.");
    let queue = thread::spawn(move || queue(&one));
    let other = thread::spawn(move || other(&two));
    let events = block_on(events.map(Result::unwrap).collect());
    let (queued, withdrawn) = (queue.join().unwrap(), texts(other.join().unwrap()));
    Story { session, events, queued, withdrawn }
}

#[test]
fn a_text_is_sent_once_or_waits() {
    every_order(|| {
        let mut session = session();
        let host = session.handle();
        let events = session.send("Hi.");
        let queue = thread::spawn(move || vec![("one", host.queue("one"))]);
        let events = block_on(events.map(Result::unwrap).collect());
        let queued = queue.join().unwrap();
        Story { session, events, queued, withdrawn: Vec::new() }.check();
    });
}

#[test]
fn a_text_is_sent_or_withdrawn() {
    every_order(|| {
        let mut session = session();
        let host = session.handle();
        assert!(!host.queue("one"), "no turn is running");
        let withdrawing = thread::spawn(move || host.take_queued());
        let events = block_on(session.run_queued().map(Result::unwrap).collect());
        let withdrawn = texts(withdrawing.join().unwrap());
        // The host queued it for a later turn, and this is one.
        let queued = withdrawn.iter().map(|_| ("one", false)).collect();
        assert_eq!(typed(session.messages()).len() + withdrawn.len(), 1);
        Story { session, events, queued, withdrawn }.check();
    });
}

#[test]
fn an_abort_ends_a_turn_that_waits_for_its_model() {
    every_order(|| {
        let agent = ModelAgent::new(Arc::new(Silent)).with_window(ContextWindow::new(8_000));
        let mut session = Session::builder(agent).build().unwrap();
        let host = session.handle();
        let events = session.send("Hi.");
        let aborting = thread::spawn(move || host.abort());
        let events: Vec<_> = block_on(events.map(Result::unwrap).collect());
        assert_eq!(events, [SessionEvent::Aborted]);
        aborting.join().unwrap();
        assert!(!session.handle().is_busy());
    });
}

#[test]
fn a_text_that_is_queued_when_the_turn_is_aborted_is_not_lost() {
    many_orders(|| {
        let abort = |host: &SessionHandle| {
            host.abort();
            Vec::new()
        };
        while_sending(|host| vec![("one", host.queue("one"))], abort).check();
    });
}

#[test]
fn texts_of_several_turns_are_sent_withdrawn_or_wait() {
    many_orders(|| {
        let queue = |host: &SessionHandle| {
            ["one", "two", "three"].map(|text| (text, host.queue(text))).to_vec()
        };
        let withdraw = |host: &SessionHandle| {
            let mut withdrawn = host.take_queued();
            withdrawn.extend(host.take_queued());
            host.abort();
            withdrawn
        };
        while_sending(queue, withdraw).check();
    });
}

#[test]
fn readers_see_the_thread_and_the_events_grow() {
    many_orders(|| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let observer = seen.clone();
        let model = ScriptedModel::repeating(["Fine.", "Fine as well."]);
        let agent = ModelAgent::new(Arc::new(model)).with_window(ContextWindow::new(8_000));
        let mut session = Session::builder(agent)
            .observe(move |event| observer.lock().unwrap().push(event.unwrap().clone()))
            .build()
            .unwrap();
        let (reads, hosts) = (session.handle(), session.handle());
        hosts.queue("Before.");
        let events = session.send("Hi.");
        let reader = thread::spawn(move || {
            let read = || (reads.recent_events(), reads.messages(), reads.token_usage());
            [read(), read(), read()]
        });
        let host = thread::spawn(move || {
            hosts.queue("After.");
            hosts.abort();
        });
        let events: Vec<_> = block_on(events.map(Result::unwrap).collect());
        host.join().unwrap();
        let handle = session.handle();
        let (messages, recent) = (handle.messages(), handle.recent_events());
        assert_eq!(*seen.lock().unwrap(), events, "observers see what the stream returns");
        assert_eq!((&messages, &recent), (session.messages(), &events));
        let ends = [SessionEvent::Aborted];
        let end = events.iter().position(|event| ends.contains(event));
        assert!(end.is_none_or(|end| end + 1 == events.len()), "an abort is the last event");
        let mut before = 0;
        for (seen, read, usage) in reader.join().unwrap() {
            assert!(events.starts_with(&seen) && messages.starts_with(&read), "{seen:?} {read:?}");
            assert!(usage.total_tokens >= before);
            before = usage.total_tokens;
        }
    });
}

#[test]
fn a_stream_that_is_dropped_leaves_each_text_in_one_place() {
    for taken in 0..6 {
        every_order(move || {
            let mut session = session();
            let host = session.handle();
            let events = session.send("Hi.");
            let queue = move || ["one", "two"].map(|text| (text, host.queue(text))).to_vec();
            let queue = thread::spawn(queue);
            let events: Vec<_> = block_on(events.take(taken).map(Result::unwrap).collect());
            let queued = queue.join().unwrap();
            // What the running turn was to take may wait now.
            let events = [events, vec![SessionEvent::Aborted]].concat();
            Story { session, events, queued, withdrawn: Vec::new() }.check();
        });
    }
}
