//! The identity of a stored log: threads that are deleted or created again in the store while a
//! journal or a session holds them, and two writers who append equal events at the same time.

use std::sync::Arc;

use futures::{FutureExt, executor::block_on};
use threadfold::{
    Message, ModelAgent, Session,
    log::{Event, EventLog},
    message::{ThreadId, Timestamp},
    model::{Clock, ModelError, ModelErrorKind},
    session::SessionError,
    store::{Journal, JsonlStore, MemoryStore, StoreError, ThreadStore},
    testing::{Scripted, ScriptedModel},
};
use threadfold_testing::{faulty_store, shared::Folder};

fn id() -> ThreadId {
    "t".parse().unwrap()
}

fn files(folder: &Folder, name: &str) -> JsonlStore {
    JsonlStore::open(folder.join(name)).unwrap().without_sync()
}

/// One store for both writers, and two stores over one folder.
fn stores(folder: &Folder) -> Vec<[Arc<dyn ThreadStore>; 2]> {
    let memory: Arc<dyn ThreadStore> = Arc::new(MemoryStore::default());
    let failing = faulty_store(MemoryStore::default(), &[]);
    let boxed: Arc<dyn ThreadStore> = Arc::new(Box::new(failing) as Box<dyn ThreadStore>);
    let one: Arc<dyn ThreadStore> = Arc::new(files(folder, "a"));
    vec![
        [memory.clone(), memory],
        [boxed.clone(), boxed],
        [one.clone(), one],
        [Arc::new(files(folder, "b")), Arc::new(files(folder, "b"))],
    ]
}

fn open(store: &Arc<dyn ThreadStore>) -> Journal {
    block_on(Journal::open(store.clone(), id())).unwrap()
}

fn say(journal: &mut Journal, text: &str) -> Result<(), StoreError> {
    journal.append(Timestamp(7), Event::MessageAppended(Message::user(text))).unwrap();
    block_on(journal.flush())
}

fn stored(store: &Arc<dyn ThreadStore>) -> EventLog {
    block_on(store.load(&id())).unwrap().log
}

/// Checks that a writer is always refused for this reason, and that neither the stored events nor
/// those of its own log are lost.
fn assert_refused(journal: &mut Journal, store: &Arc<dyn ThreadStore>, reason: &str) {
    let (there, ours) = (stored(store), journal.log().clone());
    for _ in 0..2 {
        let error = block_on(journal.flush()).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        assert_eq!((&stored(store), journal.log()), (&there, &ours));
        assert!(!journal.unstored().is_empty());
    }
}

#[test]
fn a_deleted_log_is_reported_and_can_be_written_again() {
    for [store, other] in stores(&Folder::new()) {
        let mut journal = open(&store);
        say(&mut journal, "one").unwrap();
        block_on(other.delete(&id())).unwrap();
        assert!(say(&mut journal, "two").is_err());
        assert_refused(&mut journal, &store, "deleted when it had 1 events");
        let mut anew = journal.kept_by(store.clone());
        block_on(anew.flush()).unwrap();
        assert_eq!(stored(&store), *anew.log());
        say(&mut anew, "three").unwrap();
        block_on(store.delete(&id())).unwrap();
    }
}

#[test]
fn a_recreated_log_is_not_mistaken_for_the_earlier_one() {
    // The new log is as long as the old one with the same or other texts, or shorter, or longer.
    for texts in [&["one", "two"][..], &["uno", "due"], &["one"], &["one", "two", "three"]] {
        for [store, other] in stores(&Folder::new()) {
            let mut journal = open(&store);
            say(&mut journal, "one").unwrap();
            say(&mut journal, "two").unwrap();
            block_on(other.delete(&id())).unwrap();
            let mut theirs = open(&other);
            for text in texts {
                say(&mut theirs, text).unwrap();
            }
            assert!(say(&mut journal, "three").is_err());
            assert_refused(&mut journal, &store, "is another log than the one that was read");
            say(&mut theirs, "four").unwrap();
        }
    }
}

#[test]
fn two_writers_with_equal_events_at_the_same_time_are_distinguished() {
    for begun in [&[][..], &["zero"]] {
        for [store, other] in stores(&Folder::new()) {
            let mut before = open(&store);
            for text in begun {
                say(&mut before, text).unwrap();
            }
            let (mut first, mut second) = (open(&store), open(&other));
            say(&mut first, "one").unwrap();
            assert!(say(&mut second, "one").is_err());
            let events = format!("the stored log has {} events", begun.len() + 1);
            assert_refused(&mut second, &other, &events);
            say(&mut first, "two").unwrap();
        }
    }
}

#[test]
fn a_dropped_write_is_not_mistaken_for_that_of_another_new_log() {
    let store = || faulty_store(MemoryStore::default(), &[Some(0)]);
    let store: Arc<dyn ThreadStore> = Arc::new(store());
    let (mut first, mut second) = (open(&store), open(&store));
    // It is unknown whether the first write was stored.
    assert!(say(&mut first, "one").is_err());
    say(&mut second, "one").unwrap();
    assert_refused(&mut first, &store, "the stored log has 1 events");
}

#[test]
fn events_stored_by_a_dropped_write_are_recognised() {
    let store: Arc<dyn ThreadStore> = Arc::new(faulty_store(MemoryStore::default(), &[Some(1)]));
    let mut journal = open(&store);
    journal.append(Timestamp(7), Event::MessageAppended(Message::user("one"))).unwrap();
    assert!(say(&mut journal, "two").is_err());
    assert_eq!(stored(&store).len(), 1);
    block_on(journal.flush()).unwrap();
    assert_eq!(stored(&store), *journal.log());
    // After a future that was never polled, the next write finds out what is stored.
    journal.append(Timestamp(7), Event::MessageAppended(Message::user("three"))).unwrap();
    assert!(journal.flush().now_or_never().is_some());
    drop(journal.flush());
    say(&mut journal, "four").unwrap();
    assert_eq!(stored(&store), *journal.log());
}

#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp(7)
    }
}

fn session(store: &Arc<dyn ThreadStore>) -> Session {
    let agent = ModelAgent::new(Arc::new(ScriptedModel::new(["Hello!", "Yes.", "No."])));
    let builder = Session::builder(agent).clock(Arc::new(Still)).seed(1);
    block_on(builder.thread(id()).store(store.clone()).open()).unwrap()
}

fn ask(session: &mut Session, text: &str) -> Result<(), SessionError> {
    block_on(async { session.send(text).await }).map(drop)
}

#[test]
fn a_session_whose_thread_is_deleted_or_recreated_fails_and_keeps_its_log() {
    for [store, other] in stores(&Folder::new()) {
        let mut first = session(&store);
        ask(&mut first, "Hi.").unwrap();
        let said = first.messages().len();
        block_on(other.delete(&id())).unwrap();
        let error = ask(&mut first, "Is it so?").unwrap_err().to_string();
        assert!(error.contains("deleted when it had 2 events"), "{error}");
        let mut second = session(&other);
        ask(&mut second, "Hi.").unwrap();
        let error = ask(&mut first, "Is it so?").unwrap_err().to_string();
        assert!(error.contains("is another log than the one that was read"), "{error}");
        assert!(first.messages().len() > said);
        assert_eq!(first.log().replay(), first.messages()[..]);
        assert_eq!(stored(&store).replay(), second.messages()[..]);
        ask(&mut second, "Go on.").unwrap();
    }
}

#[test]
fn two_sessions_with_equal_unanswered_prompts_are_distinguished() {
    for [store, other] in stores(&Folder::new()) {
        let session = |store: &Arc<dyn ThreadStore>| {
            let error = ModelError::new(ModelErrorKind::Authentication, "no");
            let model = ScriptedModel::new([Scripted::Error(error)]);
            let builder = Session::builder(ModelAgent::new(Arc::new(model)));
            let builder = builder.clock(Arc::new(Still)).seed(1);
            block_on(builder.thread(id()).store(store.clone()).open()).unwrap()
        };
        let (mut first, mut second) = (session(&store), session(&other));
        assert!(matches!(ask(&mut first, "Hi.").unwrap_err(), SessionError::Model(_)));
        let error = ask(&mut second, "Hi.").unwrap_err();
        assert!(matches!(error, SessionError::Store(StoreError::Conflict { .. })), "{error}");
    }
}

#[test]
fn the_second_of_two_sessions_with_equal_texts_seed_and_time_is_refused() {
    for [store, other] in stores(&Folder::new()) {
        let (mut first, mut second) = (session(&store), session(&other));
        ask(&mut first, "Hi.").unwrap();
        let error = ask(&mut second, "Hi.").unwrap_err();
        assert!(matches!(error, SessionError::Store(StoreError::Conflict { .. })), "{error}");
        ask(&mut first, "Go on.").unwrap();
        assert_eq!(stored(&store).replay(), first.messages()[..]);
    }
}
