//! Code that several tests share: folders, stores in them, events, child processes.

use std::{
    env,
    path::Path,
    process::{Child, Command, Stdio},
};

use futures::executor::block_on;
use threadfold::{
    Message,
    log::{Event, LoggedEvent},
    message::{ThreadId, Timestamp},
    store::{StoreError, ThreadStore},
};
use threadfold_sqlite::SqliteStore;
pub(crate) use threadfold_testing::shared::Folder;

/// The environment variable by which a test knows that it runs as a child process. Its value is the
/// task.
pub(crate) const CHILD: &str = "THREADFOLD_SQLITE_CHILD";

/// Opens the database of a folder.
pub(crate) fn open(folder: &Path) -> SqliteStore {
    SqliteStore::open(folder.join("threads.db")).unwrap()
}

pub(crate) fn id(name: &str) -> ThreadId {
    name.parse().unwrap()
}

pub(crate) fn said(seq: u64, text: impl Into<String>) -> LoggedEvent {
    let event = Event::MessageAppended(Message::user(text.into()));
    LoggedEvent { seq, at: Timestamp(seq), event }
}

pub(crate) fn append(
    store: &dyn ThreadStore,
    thread: &str,
    events: &[LoggedEvent],
) -> Result<(), StoreError> {
    block_on(store.append(&id(thread), None, events[0].seq, events))
}

/// The texts of a stored log.
pub(crate) fn texts(store: &dyn ThreadStore, thread: &str) -> Vec<String> {
    let log = block_on(store.load(&id(thread))).unwrap().log;
    let text = |event: &LoggedEvent| {
        let Event::MessageAppended(message) = &event.event else { panic!("{event:?}") };
        let texts = message.content.iter().filter_map(|block| block.as_text());
        texts.map(ToString::to_string).collect()
    };
    log.events().iter().map(text).collect()
}

/// Runs one test of this program in a process of its own, with `input` as the value of [`CHILD`].
pub(crate) fn child(test: &str, input: &str) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "--nocapture", test]).env(CHILD, input);
    command.stdout(Stdio::piped()).spawn().unwrap()
}
