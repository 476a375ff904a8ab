//! The conformance suites, and properties of this store that they do not check.

use std::{sync::Arc, time::Duration};

use threadfold::{
    log::{LogError, LoggedEvent},
    message::Timestamp,
    store::{LeaseStore, StoreError, ThreadStore, event_lines},
};
use threadfold_testing::{conformance, faulty_store};

use crate::support::{append, execute, id, open, rows, run, said, server, suite, texts};

const TEN: Duration = Duration::from_secs(10);

#[test]
fn the_store_conforms() {
    let Some(server) = server() else { return };
    suite(conformance::store(|| Box::new(open(&server.database()))));
    let failing = |place: usize| {
        let store = || faulty_store(open(&server.database()), &[None, Some(place)]);
        (place <= 3).then(|| Box::new(store()) as _)
    };
    suite(conformance::failing_store(failing));
}

#[test]
fn the_leases_conform() {
    let Some(server) = server() else { return };
    suite(conformance::leases(|| Box::new(open(&server.database()))));
}

#[test]
fn eight_workers_share_two_hundred_threads_for_ten_minutes() {
    let Some(server) = server() else { return };
    let store = Arc::new(open(&server.database()));
    run(conformance::workers(store)).unwrap_or_else(|breach| panic!("{breach}"));
}

#[test]
fn lines_are_stored_byte_for_byte() {
    let Some(server) = server() else { return };
    let address = server.database();
    let odd = r#"{"seq":0,"at":7,"event":{"compacted":{"b":1.0,"a":[1e2,"\u00e4\u0000"]}}}"#;
    let odd: LoggedEvent = serde_json::from_str(odd).unwrap();
    let events = [odd, said(1, "a\n\r\"\\\u{0}\u{2028}\u{1f600}"), said(2, "")];
    append(&open(&address), "t", &events).unwrap();
    let stored = rows(&address, "SELECT event FROM threadfold.events ORDER BY seq");
    assert_eq!(stored, event_lines(0, &events).unwrap());
    assert!(stored[0].contains(r#"{"b":1.0,"a":[1e2,"\u00e4\u0000"]}"#), "{}", stored[0]);
}

#[test]
fn threads_are_listed_by_their_bytes() {
    let Some(server) = server() else { return };
    let store = open(&server.database());
    for name in ["b", "B", "a-b", "aa", "a_b", "A"] {
        append(&store, name, &[said(0, "hi")]).unwrap();
    }
    let names = ["A", "B", "a-b", "a_b", "aa", "b"].map(id);
    assert_eq!(run(store.list()).unwrap(), names);
}

#[test]
fn a_row_that_is_no_event_or_is_missing_is_an_error() {
    let Some(server) = server() else { return };
    let address = server.database();
    let events: Vec<_> = (0..4).map(|seq| said(seq, "hi")).collect();
    let store = open(&address);
    append(&store, "broken", &events).unwrap();
    append(&store, "gap", &events).unwrap();
    let change = "UPDATE threadfold.events SET event = 'hi' WHERE thread = 'broken' AND seq = 2;
                  DELETE FROM threadfold.events WHERE thread = 'gap' AND seq = 1";
    execute(&address, change);
    let load = |thread: &str| match run(store.load(&id(thread))) {
        Err(StoreError::Unreadable { source, .. }) => source,
        other => panic!("{other:?}"),
    };
    assert!(matches!(load("broken"), LogError::Broken { line: 4, .. }));
    assert_eq!(load("gap"), LogError::Seq { expected: 1, found: 2 });
}

#[test]
fn one_of_many_simultaneous_appends_is_stored_completely() {
    let Some(server) = server() else { return };
    let address = server.database();
    let stores: Vec<_> = (0..8).map(|_| open(&address)).collect();
    for round in 0..20 {
        let outcomes = run(async {
            let appends = (0_u64..).zip(&stores).map(|(writer, store)| async move {
                let text = format!("{writer} of {round}");
                let events = [said(2 * round, text.as_str()), said(2 * round + 1, text.as_str())];
                store.append(&id("t"), None, 2 * round, &events).await
            });
            futures::future::join_all(appends).await
        });
        let stored = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        assert_eq!(stored, 1, "{outcomes:?}");
        for refused in outcomes.into_iter().filter_map(Result::err) {
            assert!(matches!(refused, StoreError::Conflict { .. }), "{refused}");
        }
    }
    let texts = texts(&stores[0], "t");
    assert_eq!(texts.len(), 40);
    assert!(texts.chunks(2).all(|pair| pair[0] == pair[1]), "{texts:?}");
}

#[test]
fn a_deleted_thread_is_in_no_table() {
    let Some(server) = server() else { return };
    let address = server.database();
    let store = open(&address);
    for thread in [id("kept"), id("gone")] {
        run(store.append(&thread, None, 0, &[said(0, "hi")])).unwrap();
        run(store.acquire_lease(&thread, "worker", Timestamp(0), TEN)).unwrap();
    }
    run(store.delete(&id("gone"))).unwrap();
    for table in ["logs", "events", "leases"] {
        let left = rows(&address, &format!("SELECT thread FROM threadfold.{table}"));
        assert_eq!(left, ["kept"], "{table}");
    }
}
