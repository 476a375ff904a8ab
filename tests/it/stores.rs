//! Stores of logs: the suites on those of the crate and on broken ones, then tests on
//! the bytes of files: crashes, concurrent writers, costs.

use std::{
    env, fs,
    io::Write,
    ops::Range,
    path::Path,
    process::{Command, Stdio},
    sync::{Arc, Barrier},
    thread,
    time::Duration,
};

use futures::executor::block_on;
use threadfold::{
    Message,
    log::{Event, EventLog, LogError, LogId, LoggedEvent},
    message::{ThreadId, Timestamp},
    store::{Journal, JsonlStore, Loaded, MemoryStore, StoreError, ThreadStore},
};
use threadfold_testing::{
    conformance::{self, Law},
    faulty_store,
    shared::Folder,
};

use crate::support::broken_store::BrokenStore;

#[test]
fn our_stores_conform() {
    let (folder, mut count) = (Folder::new(), 0);
    let mut new_folder = || {
        count += 1;
        folder.join(count.to_string())
    };
    let mut makers: [Box<dyn FnMut() -> Box<dyn ThreadStore>>; 4] = [
        Box::new(|| Box::new(MemoryStore::default())),
        Box::new(|| Box::new(Arc::new(Box::new(MemoryStore::default())))),
        Box::new(|| Box::new(faulty_store(MemoryStore::default(), &[]))),
        Box::new(move || Box::new(JsonlStore::open(new_folder()).unwrap().without_sync())),
    ];
    for make in &mut makers {
        block_on(conformance::store(make)).unwrap_or_else(|breach| panic!("{breach}"));
    }
    let (folder, mut count) = (Folder::new(), 0);
    let synced = || {
        count += 1;
        Box::new(JsonlStore::open(folder.join(count.to_string())).unwrap()) as Box<dyn ThreadStore>
    };
    block_on(conformance::store(synced)).unwrap_or_else(|breach| panic!("{breach}"));
}

#[test]
fn our_stores_conform_in_their_failures() {
    let outcome = block_on(conformance::failing_store(|place| {
        let store = faulty_store(MemoryStore::default(), &[None, Some(place)]);
        (place <= 3).then(|| Box::new(store) as _)
    }));
    outcome.unwrap_or_else(|breach| panic!("{breach}"));
    let folder = Folder::new();
    let outcome = block_on(conformance::failing_store(|place| {
        let files = JsonlStore::open(folder.join(place.to_string())).unwrap();
        (place <= 3).then(|| Box::new(faulty_store(files, &[None, Some(place)])) as _)
    }));
    outcome.unwrap_or_else(|breach| panic!("{breach}"));
}

#[test]
fn a_broken_store_is_caught() {
    let laws = [
        Law::UnknownIsEmpty,
        Law::StoredComesBack,
        Law::TailIsRest,
        Law::ConflictWritesNothing,
        Law::EmptyStoresNothing,
        Law::PlacesRunOn,
        Law::ThreadsAreApart,
        Law::ListNamesAll,
        Law::OneWriterWins,
        Law::BaseBelongs,
        Law::DeletedIsGone,
    ];
    for law in laws {
        let outcome = block_on(conformance::store(|| Box::new(BrokenStore::new(law))));
        let breach = outcome.expect_err(&law.to_string());
        assert_eq!(breach.law, law, "{breach}");
    }
    let law = Law::FailureLeavesBeginning;
    let make = |place| (place == 0).then(|| Box::new(BrokenStore::new(law)) as _);
    assert_eq!(block_on(conformance::failing_store(make)).unwrap_err().law, law);
}

fn id(name: &str) -> ThreadId {
    name.parse().unwrap()
}

/// Events with these numbers and this name in their texts.
fn said(by: &str, places: Range<u64>) -> Vec<LoggedEvent> {
    let say = |seq| {
        let message = Message::user(format!("{by} says {seq}: \"\u{e4}\u{1f600}\"\n"));
        LoggedEvent { seq, at: Timestamp(seq), event: Event::MessageAppended(message) }
    };
    places.map(say).collect()
}

fn append(
    store: &dyn ThreadStore,
    thread: &str,
    len: u64,
    events: &[LoggedEvent],
) -> Result<(), StoreError> {
    block_on(store.append(&id(thread), None, len, events))
}

fn load(store: &dyn ThreadStore, thread: &str) -> Result<Loaded, StoreError> {
    block_on(store.load(&id(thread)))
}

fn unsynced(folder: &Path) -> JsonlStore {
    JsonlStore::open(folder).unwrap().without_sync()
}

/// Checks that a file is a header and these events, one line each, and nothing else.
fn assert_lines(path: &Path, thread: &str, events: &[LoggedEvent]) {
    let text = fs::read_to_string(path).unwrap();
    let header = format!("{{\"log\":\"threadfold\",\"major\":1,\"thread\":\"{thread}\"}}\n");
    let lines = events.iter().map(|event| serde_json::to_string(event).unwrap() + "\n");
    assert_eq!(text, header + &lines.collect::<String>());
}

#[test]
fn a_crash_at_any_byte_leaves_the_beginning_of_the_log() {
    let folder = Folder::new();
    let (path, store) = (folder.join("t.jsonl"), unsynced(&folder));
    let mut sizes = vec![0];
    for places in [0..1, 1..3, 3..6] {
        append(&store, "t", places.start, &said("one", places)).unwrap();
        sizes.push(fs::metadata(&path).unwrap().len());
    }
    let (whole, events) = (fs::read(&path).unwrap(), said("one", 0..6));
    let newlines = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let ends: Vec<usize> = newlines.map(|(at, _)| at + 1).collect();
    for cut in 0..=whole.len() {
        let complete = ends.iter().filter(|end| **end <= cut).count();
        let (kept, end) =
            (complete.saturating_sub(1), complete.checked_sub(1).map_or(0, |i| ends[i]));
        // A store of another process, one of this process that has read the file, and one that only
        // reads.
        for variant in ["new", "knows", "looks"] {
            write_anew(&path, &whole[..ends[1]]);
            let store = unsynced(&folder);
            if variant == "knows" {
                append(&store, "t", 1, &[]).unwrap();
            }
            write_anew(&path, &whole[..cut]);
            if variant == "looks" {
                let loaded = load(&store, "t").unwrap();
                assert_eq!(loaded.log.events(), &events[..kept], "cut at {cut}");
                assert_eq!(loaded.torn, (end < cut).then_some((cut - end) as u64), "cut at {cut}");
            }
            let next = said("two", kept as u64..kept as u64 + 2);
            append(&store, "t", kept as u64, &next).unwrap();
            assert_lines(&path, "t", &[&events[..kept], &next].concat());
            assert_eq!(load(&store, "t").unwrap().torn, None);
        }
    }
}

/// A cut before the end of the first event leaves no log, so the next one may have another id.
#[test]
fn a_log_that_is_torn_before_its_first_event_ends_is_begun_anew() {
    let folder = Folder::new();
    let (path, events) = (folder.join("t.jsonl"), said("one", 0..1));
    append(&unsynced(&folder), "t", 0, &events).unwrap();
    let whole = fs::read(&path).unwrap();
    let header = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for cut in [header - 1, header, header + 1, whole.len() - 1] {
        write_anew(&path, &whole[..cut]);
        let store = unsynced(&folder);
        let thread = "t".parse().unwrap();
        let loaded = block_on(store.load(&thread)).unwrap();
        assert_eq!((loaded.log.len(), loaded.id, loaded.end), (0, None, 0), "cut at {cut}");
        let other = Some(LogId::random());
        for seq in 0..3 {
            let next = said("two", seq..seq + 1);
            block_on(store.append(&thread, other, seq, &next)).unwrap();
        }
        let loaded = block_on(unsynced(&folder).load(&thread)).unwrap();
        assert_eq!((loaded.log.events(), loaded.id), (&said("two", 0..3)[..], other));
    }
}

#[cfg(unix)]
#[test]
fn a_file_is_replaced_as_a_whole_and_no_link_is_followed() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use threadfold::store::replace_file;

    let folder = Folder::new();
    let (file, link) = (folder.join("a.json"), folder.join("link"));
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    replace_file(&file, b"new").unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"new");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);

    symlink(&file, &link).unwrap();
    let error = replace_file(&link, b"other").unwrap_err();
    assert_eq!(error.to_string(), "a symbolic link; links are not followed");
    assert!(link.is_symlink() && fs::read(&file).unwrap() == b"new");

    // The name is taken by a folder, so the new file cannot be moved there.
    let taken = folder.join("taken");
    fs::create_dir(&taken).unwrap();
    assert_eq!(replace_file(&taken, b"x").unwrap_err().to_string(), "a folder, not a file");
    assert_eq!(fs::read_dir(&*folder).unwrap().count(), 3);
}

/// On some file systems closing a truncated file waits for the disk.
fn write_anew(path: &Path, bytes: &[u8]) {
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_torn_last_line_stays_until_the_next_append() {
    let folder = Folder::new();
    let (path, store) = (folder.join("t.jsonl"), unsynced(&folder));
    append(&store, "t", 0, &said("one", 0..2)).unwrap();
    // The torn line is longer than the one that replaces it.
    let begun = format!("{{\"seq\":2,\"at\":0,\"event\":{{\"{}", "x".repeat(5_000));
    let torn = [fs::read(&path).unwrap(), begun.into_bytes()].concat();
    fs::write(&path, &torn).unwrap();
    append(&store, "t", 2, &[]).unwrap();
    assert!(append(&store, "t", 3, &said("one", 3..4)).is_err());
    assert_eq!(fs::read(&path).unwrap(), torn);
    append(&store, "t", 2, &said("two", 2..3)).unwrap();
    assert_lines(&path, "t", &[said("one", 0..2), said("two", 2..3)].concat());
}

/// Appends this many events one by one, each after the events that are stored by then.
fn append_in_turn(store: &JsonlStore, by: &str, count: u64) {
    let (mut len, mut left) = (0, count);
    while left > 0 {
        match append(store, "t", len, &said(by, len..len + 2)) {
            Ok(()) => (len, left) = (len + 2, left - 1),
            Err(StoreError::Conflict { expected, found }) => {
                assert_eq!(expected, len);
                assert!(found > len, "a log became shorter");
                len = found;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Checks that each writer has appended this many pairs, with nothing between the two events of a
/// pair.
fn assert_pairs(folder: &Path, writers: &[String], count: usize) {
    let Loaded { log, torn, .. } = load(&unsynced(folder), "t").unwrap();
    assert_eq!(torn, None);
    assert_eq!(log.len(), (writers.len() * count * 2) as u64);
    let author = |event: &LoggedEvent| {
        let Event::MessageAppended(message) = &event.event else { panic!("{event:?}") };
        message.content[0].as_text().unwrap().split(' ').next().unwrap().to_owned()
    };
    let authors: Vec<String> = log.events().iter().map(author).collect();
    assert!(authors.chunks(2).all(|pair| pair[0] == pair[1]), "{authors:?}");
    for writer in writers {
        let pairs = authors.iter().filter(|author| *author == writer).count() / 2;
        assert_eq!(pairs, count, "{writer}");
    }
    assert_lines(&folder.join("t.jsonl"), "t", log.events());
}

#[test]
fn threads_that_append_at_once_do_not_mix() {
    let folder = Folder::new();
    let (shared, start) = (unsynced(&folder), Barrier::new(6));
    let writers: Vec<String> = (0..6).map(|writer| format!("writer{writer}")).collect();
    thread::scope(|scope| {
        for (index, writer) in writers.iter().enumerate() {
            let (shared, start, folder) = (&shared, &start, &folder);
            scope.spawn(move || {
                start.wait();
                // Three share a store, three have one of their own.
                let own = unsynced(folder);
                append_in_turn(if index % 2 == 0 { shared } else { &own }, writer, 40);
            });
        }
    });
    assert_pairs(&folder, &writers, 40);
}

/// Tells a child process of the test below where to write, and under which name.
const CHILD: &str = "THREADFOLD_TEST_APPENDS_AS";

#[test]
fn processes_that_append_at_once_do_not_mix() {
    if let Ok(order) = env::var(CHILD) {
        let (writer, folder) = order.split_once(' ').unwrap();
        let folder = Path::new(folder);
        let waits = (0..10_000).find(|_| {
            thread::sleep(Duration::from_millis(1));
            folder.join("go").exists()
        });
        waits.expect("the parent says when to begin");
        return append_in_turn(&unsynced(folder), writer, 40);
    }
    let folder = Folder::new();
    let writers: Vec<String> = (0..3).map(|writer| format!("process{writer}")).collect();
    let spawn = |writer: &String| {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "stores::processes_that_append_at_once_do_not_mix"]);
        command.env(CHILD, format!("{writer} {}", folder.display()));
        command.stdout(Stdio::null()).spawn().unwrap()
    };
    let children: Vec<_> = writers.iter().map(spawn).collect();
    fs::write(folder.join("go"), "").unwrap();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_pairs(&folder, &writers, 40);
}

#[test]
fn an_append_reads_the_same_few_bytes_for_any_length_of_the_log() {
    let folder = Folder::new();
    let store = unsynced(&folder);
    append(&store, "t", 0, &said("one", 0..1)).unwrap();
    for places in (1..3_000).map(|seq| seq..seq + 1) {
        let before = store.bytes_read();
        append(&store, "t", places.start, &said("one", places)).unwrap();
        assert!(store.bytes_read() - before <= 64);
    }
    // Events that another store has written since are read, and earlier ones are not read again.
    let size = || fs::metadata(folder.join("t.jsonl")).unwrap().len();
    let (other, known) = (unsynced(&folder), size());
    append(&other, "t", 3_000, &said("two", 3_000..3_010)).unwrap();
    assert!(other.bytes_read() >= known);
    let (new, before) = (size() - known, store.bytes_read());
    append(&store, "t", 3_010, &said("one", 3_010..3_011)).unwrap();
    assert!((new..new + 200).contains(&(store.bytes_read() - before)));
    // Loading returns the lengths, too.
    let third = unsynced(&folder);
    load(&third, "t").unwrap();
    let before = third.bytes_read();
    append(&third, "t", 3_011, &said("three", 3_011..3_012)).unwrap();
    assert!(third.bytes_read() - before <= 64);
}

#[test]
fn the_log_of_another_thread_is_unchanged() {
    let folder = Folder::new();
    let (path, store) = (folder.join("ABC.jsonl"), unsynced(&folder));
    append(&store, "abc", 0, &said("one", 0..1)).unwrap();
    // As on a file system that ignores the case of names.
    fs::rename(folder.join("abc.jsonl"), &path).unwrap();
    let bytes = fs::read(&path).unwrap();
    let refusals = [
        append(&store, "ABC", 1, &said("two", 1..2)),
        append(&store, "ABC", 0, &said("two", 0..1)),
        load(&store, "ABC").map(drop),
        block_on(store.delete(&id("ABC"))),
    ];
    for refusal in refusals {
        let Err(StoreError::OtherThread { expected, found, .. }) = refusal else {
            panic!("{refusal:?}")
        };
        assert_eq!((expected, found), (id("ABC"), id("abc")));
    }
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn a_damaged_log_is_an_error_and_unchanged() {
    let folder = Folder::new();
    let (path, store) = (folder.join("t.jsonl"), unsynced(&folder));
    append(&store, "t", 0, &said("one", 0..3)).unwrap();
    let whole = fs::read_to_string(&path).unwrap();
    let damages = [
        whole.replace("{\"seq\":1,", "{\"seq\":1"),
        whole.replace("\"seq\":1,", "\"seq\":7,"),
        whole.replace("message_appended", "message_appende"),
        whole.replace("user", "uses"),
        whole.replace("\"major\":1", "\"major\":2"),
        "something else\nentirely\n".to_owned(),
        "something else entirely".to_owned(),
    ];
    for damaged in damages {
        fs::write(&path, &damaged).unwrap();
        let store = unsynced(&folder);
        let refusals = [
            load(&store, "t").map(drop),
            append(&store, "t", 3, &said("two", 3..4)),
            append(&store, "t", 0, &said("two", 0..1)),
        ];
        for refusal in refusals {
            assert!(matches!(refusal, Err(StoreError::Unreadable { .. })), "{refusal:?}");
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), damaged);
    }
    fs::write(&path, whole.replace("\"seq\":1,", "\"seq\":7,")).unwrap();
    let error = load(&unsynced(&folder), "t").unwrap_err();
    let expected =
        format!("{}: line 3 of the log holds event 7 instead of event 1", path.display());
    assert!(error.to_string().starts_with(&expected), "{error}");
}

#[test]
fn a_thread_whose_last_event_has_a_damaged_kind_is_not_opened() {
    let folder = Folder::new();
    let (path, store) = (folder.join("t.jsonl"), unsynced(&folder));
    append(&store, "t", 0, &said("one", 0..3)).unwrap();
    let whole = fs::read_to_string(&path).unwrap();
    let at = whole.rfind("message_appended").unwrap() + "message_appende".len();
    fs::write(&path, whole[..at].to_owned() + "f" + &whole[at + 1..]).unwrap();
    let open = |store: JsonlStore| block_on(Journal::open(Arc::new(store), id("t")));
    for store in [store, unsynced(&folder)] {
        let error = open(store).unwrap_err();
        let StoreError::Unreadable { source, .. } = &error else { panic!("{error:?}") };
        let kind = "message_appendef".into();
        assert_eq!(*source, LogError::UnknownKind { seq: 2, kind });
    }
    fs::write(&path, whole).unwrap();
    assert_eq!(open(unsynced(&folder)).unwrap().thread().messages().len(), 3);
}

#[test]
fn a_replaced_log_is_read_again() {
    let folder = Folder::new();
    let (path, store) = (folder.join("t.jsonl"), unsynced(&folder));
    append(&store, "t", 0, &said("one", 0..2)).unwrap();
    let size = fs::metadata(&path).unwrap().len();
    // The other log has one event less and as many bytes, or more, or fewer.
    for more in [-1_i64, 0, 1, 100] {
        let other = unsynced(&folder);
        block_on(other.delete(&id("t"))).unwrap();
        let mut notice = vec![said("two", 0..1).remove(0)];
        notice[0].event = Event::LocalNotice { text: "x".into() };
        append(&other, "t", 0, &notice).unwrap();
        let lacking = i64::try_from(size - fs::metadata(&path).unwrap().len()).unwrap() + more;
        let text = "x".repeat(usize::try_from(lacking).unwrap() + 1);
        notice[0].event = Event::LocalNotice { text: text.into() };
        block_on(other.delete(&id("t"))).unwrap();
        append(&other, "t", 0, &notice).unwrap();
        let found = i64::try_from(fs::metadata(&path).unwrap().len()).unwrap();
        assert_eq!(found, i64::try_from(size).unwrap() + more);
        let late = append(&store, "t", 2, &said("one", 2..3));
        assert!(matches!(late, Err(StoreError::Conflict { expected: 2, found: 1 })), "{late:?}");
        block_on(store.delete(&id("t"))).unwrap();
        append(&store, "t", 0, &said("one", 0..2)).unwrap();
    }
}

#[test]
fn a_deleted_log_is_gone_for_other_stores_too() {
    let folder = Folder::new();
    let [one, other] = [unsynced(&folder), unsynced(&folder)];
    append(&one, "t", 0, &said("one", 0..2)).unwrap();
    block_on(other.delete(&id("t"))).unwrap();
    assert_eq!(block_on(one.list()).unwrap(), []);
    let late = append(&one, "t", 2, &said("one", 2..3));
    assert!(matches!(late, Err(StoreError::Conflict { expected: 2, found: 0 })), "{late:?}");
    assert_eq!(fs::metadata(folder.join("t.jsonl")).unwrap().len(), 0);
}

#[test]
fn a_conflict_says_what_happened_to_the_log() {
    let store = MemoryStore::default();
    append(&store, "t", 0, &said("one", 0..2)).unwrap();
    let conflict = |len| append(&store, "t", len, &said("two", len..len + 1)).unwrap_err();
    let rows = [
        (0, "the thread exists already: the stored log has 2 events"),
        (1, "another writer appended: the stored log has 2 events, and had 1 before"),
        (3, "the stored log was cut: it has 2 events, and had 3 before"),
    ];
    for (len, expected) in rows {
        assert_eq!(conflict(len).to_string(), expected);
    }
}

#[test]
fn a_store_does_not_open_where_a_file_is() {
    let folder = Folder::new();
    let file = folder.join("notes.txt");
    fs::write(&file, "mine").unwrap();
    for path in [file.clone(), file.join("logs")] {
        let error = JsonlStore::open(&path).unwrap_err().to_string();
        let (path, file) = (path.display(), file.display());
        assert_eq!(error, format!("{path}: {file} is a file, not a folder"));
    }
}

#[test]
fn only_logs_are_listed() {
    let folder = Folder::new();
    let store = unsynced(&folder);
    append(&store, "b", 0, &said("one", 0..1)).unwrap();
    append(&store, "a.jsonl", 0, &said("one", 0..1)).unwrap();
    fs::create_dir(folder.join("c.jsonl")).unwrap();
    for name in ["notes.txt", ".hidden.jsonl", "a b.jsonl", ".jsonl"] {
        fs::write(folder.join(name), "x").unwrap();
    }
    assert_eq!(block_on(store.list()).unwrap(), [id("a.jsonl"), id("b")]);
}

#[test]
fn a_failed_write_is_reported_and_leaves_no_trace() {
    let folder = Folder::new();
    let store = unsynced(&folder);
    fs::create_dir(folder.join("t.jsonl")).unwrap();
    let error = append(&store, "t", 0, &said("one", 0..1)).unwrap_err();
    assert!(matches!(error, StoreError::Medium { .. }), "{error:?}");
    assert!(error.to_string().starts_with(&folder.join("t.jsonl").display().to_string()));
    assert!(JsonlStore::open(Path::new(file!()).join("x")).is_err());
    // An append that stores nothing makes no file either.
    append(&store, "u", 0, &[]).unwrap();
    assert!(append(&store, "u", 1, &said("one", 1..2)).is_err());
    assert!(!folder.join("u.jsonl").exists());
}

#[test]
fn a_reader_waits_for_a_writer() {
    let folder = Folder::new();
    let (path, store) = (folder.join("t.jsonl"), unsynced(&folder));
    append(&store, "t", 0, &said("one", 0..1)).unwrap();
    let mut writer = fs::OpenOptions::new().append(true).open(&path).unwrap();
    writer.lock().unwrap();
    let line = serde_json::to_string(&said("two", 1..2)[0]).unwrap() + "\n";
    let (begun, rest) = line.split_at(20);
    writer.write_all(begun.as_bytes()).unwrap();
    thread::scope(|scope| {
        let reader = scope.spawn(|| load(&store, "t").unwrap());
        thread::sleep(Duration::from_millis(50));
        writer.write_all(rest.as_bytes()).unwrap();
        drop(writer);
        let Loaded { log, torn, .. } = reader.join().unwrap();
        assert_eq!((log.len(), torn), (2, None));
    });
}

#[test]
fn an_unpolled_future_has_done_nothing() {
    let folder = Folder::new();
    let (store, thread, events) = (unsynced(&folder), id("t"), said("one", 0..1));
    drop(store.append(&thread, None, 0, &events));
    assert_eq!(load(&store, "t").unwrap().log, EventLog::new(thread));
}

#[test]
fn futures_of_stores_can_be_sent() {
    fn sent<T: Send>(_: T) {}
    let (store, thread) = (MemoryStore::default(), id("t"));
    let store: &dyn ThreadStore = &store;
    sent(store.append(&thread, None, 0, &[]));
    sent(store.load_from(&thread, 0));
    let error = LogError::NoHeader { bytes: 1 };
    let error = StoreError::Unreadable { place: "t".into(), source: error };
    sent(error.clone());
    assert_eq!(error.to_string(), "t: the log has no complete header, only 1 bytes of one");
}

#[cfg(unix)]
mod on_unix {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn files_of_a_store_are_readable_only_by_their_owner() {
        let folder = Folder::new();
        let (above, logs) = (folder.join("above"), folder.join("above/logs"));
        append(&unsynced(&logs), "t", 0, &said("one", 0..1)).unwrap();
        assert_eq!([mode(&above), mode(&logs)], [0o700; 2]);
        assert_eq!(mode(&logs.join("t.jsonl")), 0o600);
    }

    #[test]
    fn a_folder_of_the_host_keeps_its_permissions() {
        let folder = Folder::new();
        fs::set_permissions(&*folder, fs::Permissions::from_mode(0o755)).unwrap();
        append(&unsynced(&folder), "t", 0, &said("one", 0..1)).unwrap();
        assert_eq!((mode(&folder), mode(&folder.join("t.jsonl"))), (0o755, 0o600));
    }

    #[test]
    fn no_link_is_followed_to_a_file_elsewhere() {
        let folder = Folder::new();
        let (logs, elsewhere) = (folder.join("logs"), folder.join("elsewhere"));
        let store = unsynced(&logs);
        append(&store, "real", 0, &said("one", 0..1)).unwrap();
        let log = fs::read_to_string(logs.join("real.jsonl")).unwrap().replace("real", "t");
        // An empty file, another log, one that is not there, and a folder.
        for content in [Some(""), Some(log.as_str()), None] {
            let _ = fs::remove_file(logs.join("t.jsonl"));
            symlink(&elsewhere, logs.join("t.jsonl")).unwrap();
            let _ = fs::remove_file(&elsewhere);
            if let Some(content) = content {
                fs::write(&elsewhere, content).unwrap();
            }
            let refusals = [
                append(&store, "t", 0, &said("two", 0..1)),
                append(&store, "t", 1, &said("two", 1..2)),
                load(&store, "t").map(drop),
                block_on(store.delete(&id("t"))),
            ];
            for refusal in refusals {
                let error = refusal.unwrap_err().to_string();
                assert!(
                    error.ends_with("t.jsonl is a symbolic link; links are not followed"),
                    "{error}"
                );
            }
            assert_eq!(fs::read_to_string(&elsewhere).ok().as_deref(), content);
        }
    }

    #[test]
    fn special_files_are_neither_listed_nor_opened() {
        let folder = Folder::new();
        let store = unsynced(&folder);
        append(&store, "real", 0, &said("one", 0..1)).unwrap();
        symlink(folder.join("nowhere"), folder.join("dangling.jsonl")).unwrap();
        symlink(folder.join("real.jsonl"), folder.join("linked.jsonl")).unwrap();
        let made = Command::new("mkfifo").arg(folder.join("pipe.jsonl")).status();
        assert_eq!(block_on(store.list()).unwrap(), [id("real")]);
        if made.is_ok_and(|status| status.success()) {
            // Opening it would wait for a writer that never comes.
            let error = load(&store, "pipe").unwrap_err().to_string();
            assert!(error.ends_with("pipe.jsonl: not a plain file"), "{error}");
        }
    }
}
