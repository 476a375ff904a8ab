//! A view serves the thread for which it was made, as the same bytes, and what a client sets for a
//! request is what the request has.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use threadfold_testing::shared::Folder;

use super::{MESSAGES, Served, WINDOW, count, options, run, upstream::Upstream};

/// A call of a tool, and its result.
fn round(number: usize, lines: usize) -> [Value; 2] {
    let id = format!("toolu_{number}");
    let text = format!("file {number}: a line of text\n").repeat(lines);
    [
        json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": id, "name": "read", "input": {"path": "a.rs"}}]}),
        json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": [{"type": "text", "text": text}]}]}),
    ]
}

fn typed(text: &str) -> Value {
    json!({"role": "user", "content": [{"type": "text", "text": text}]})
}

/// Sends a thread, and returns the body that the provider got.
async fn sent(proxy: &Served, upstream: &Upstream, path: &str, body: &Value) -> (u16, String) {
    let request = super::client().post(format!("{}{path}", proxy.url()));
    let request = request.header("content-type", "application/json").body(body.to_string());
    let status = request.send().await.unwrap().status().as_u16();
    let body = upstream.seen.last.lock().unwrap().2.clone();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

/// All values of the fields with this name.
fn values(json: &Value, name: &str) -> Vec<Value> {
    match json {
        Value::Object(fields) => {
            let own = fields.get(name).filter(|value| !value.is_null()).cloned();
            own.into_iter().chain(fields.values().flat_map(|value| values(value, name))).collect()
        }
        Value::Array(items) => items.iter().flat_map(|item| values(item, name)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

#[test]
fn a_request_that_is_sent_again_gets_the_same_bytes_though_its_newest_result_was_cut() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW * 2).await);
        let proxy = Served::in_folder(options(&upstream, Some(WINDOW)), &folder).await;
        let mut messages = vec![typed("Fix the build.")];
        (0..6).for_each(|number| messages.extend(round(number, if number < 5 { 20 } else { 900 })));
        let body = json!({"model": "m", "max_tokens": 10, "messages": messages});
        let mut bodies = Vec::new();
        for _ in 0..4 {
            let (status, body) = sent(&proxy, &upstream, MESSAGES.0, &body).await;
            assert_eq!(status, 200);
            bodies.push(body);
        }
        bodies.dedup();
        assert_eq!(bodies.len(), 1);
        let counted = sent(&proxy, &upstream, "/v1/messages/count_tokens", &body).await;
        assert_eq!(counted.1, bodies[0]);
        assert_eq!((count(&upstream.seen.refused), count(&upstream.seen.answered)), (0, 4));
        let rows = rusqlite::Connection::open(folder.join("threads.db")).unwrap();
        for table in ["logs", "proxy_views"] {
            let count = format!("SELECT count(*) FROM {table}");
            assert_eq!(rows.query_row(&count, [], |row| row.get(0)), Ok(1), "{table}");
        }
    });
}

#[test]
fn a_compacted_thread_has_no_cache_mark_but_those_of_its_request() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(60_000).await);
        let proxy = Served::in_folder(options(&upstream, Some(6_000)), &folder).await;
        let (mut thread, mut smaller) = (vec![typed("Fix the build.")], 0);
        for number in 0..20 {
            if number == 9 {
                thread.push(json!({"role": "assistant", "content": "Done."}));
                thread.push(typed(&format!("Read the last file. {}", "It matters. ".repeat(60))));
            } else {
                thread.extend(round(number, if number == 10 { 400 } else { 40 }));
            }
            let ttl = if number < 15 { "5m" } else { "1h" };
            let mark = json!({"type": "ephemeral", "ttl": ttl});
            let mut messages = thread.clone();
            let users = messages.iter_mut().rev().filter(|message| message["role"] == "user");
            for message in users.take(2) {
                message["content"][0]["cache_control"] = mark.clone();
            }
            let tool = json!({"name": "read", "input_schema": {"type": "object"},
                "cache_control": mark});
            let system = json!([{"type": "text", "text": "Be brief.", "cache_control": mark}]);
            let body = json!({"model": "m", "max_tokens": 10, "tools": [tool], "system": system,
                "messages": messages});
            let (status, sent) = sent(&proxy, &upstream, MESSAGES.0, &body).await;
            assert_eq!(status, 200);
            smaller += usize::from(sent.len() < body.to_string().len());
            let sent: Value = sent.parse().unwrap();
            for of in ["tools", "system"] {
                assert_eq!(
                    values(&sent[of], "cache_control"),
                    vec![mark.clone()],
                    "{number}: {of}"
                );
            }
            let marks = values(&sent["messages"], "cache_control");
            let all_now = marks.iter().all(|found| *found == mark);
            assert!(marks.len() <= 2 && all_now, "{number}: {marks:?}");
        }
        assert!(smaller > 8, "{smaller}");
    });
}

#[test]
fn a_beginning_of_the_answer_stays_last() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
        let proxy = Served::in_folder(options(&upstream, Some(WINDOW)), &folder).await;
        let mut messages = vec![typed("Fix the build.")];
        (0..30).for_each(|number| messages.extend(round(number, 20)));
        messages.push(json!({"role": "assistant", "content": "{\"answer\":"}));
        let body = json!({"model": "of-a-gateway", "max_tokens": 10, "messages": messages});
        let (_, sent) = sent(&proxy, &upstream, MESSAGES.0, &body).await;
        assert!(sent.len() < body.to_string().len() / 2, "{}", sent.len());
        let sent: Value = sent.parse().unwrap();
        assert_eq!(sent["messages"].as_array().unwrap().last(), messages.last());
    });
}

#[test]
fn what_one_model_refuses_another_model_gets() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(200_000).await);
        let proxy = Served::in_folder(options(&upstream, None), &folder).await;
        let mut messages = vec![typed("Fix the build.")];
        let mut rounds = 0..;
        let mut body = |model: &str, more: usize| {
            rounds.by_ref().take(more).for_each(|number| messages.extend(round(number, 20)));
            json!({"model": model, "max_tokens": 10, "messages": messages})
        };
        upstream.seen.lies.store(1, std::sync::atomic::Ordering::Relaxed);
        let first = body("small", 30);
        let refused = first.to_string().len();
        let (status, smaller) = sent(&proxy, &upstream, MESSAGES.0, &first).await;
        assert!(status == 200 && smaller.len() < refused * 3 / 4, "{} {refused}", smaller.len());
        let mut largest = 0;
        for _ in 0..4 {
            let (_, sent) = sent(&proxy, &upstream, MESSAGES.0, &body("large", 15)).await;
            largest = largest.max(sent.len());
        }
        assert!(largest > refused, "{largest} of {refused}");
        let (_, sent) = sent(&proxy, &upstream, MESSAGES.0, &body("small", 1)).await;
        assert!(sent.len() < refused, "{} {refused}", sent.len());
    });
}

/// The numbers of logs, of threads with a view, and of proxies that run in a folder.
fn stored(folder: &Folder) -> [i64; 3] {
    let rows = rusqlite::Connection::open(folder.join("threads.db")).unwrap();
    ["logs", "proxy_views", "proxy_running"].map(|table| {
        let of = if table == "proxy_running" { "address" } else { "thread" };
        let count = format!("SELECT count(DISTINCT {of}) FROM {table}");
        rows.query_row(&count, [], |row| row.get(0)).unwrap()
    })
}

async fn until(condition: impl Fn() -> bool) {
    for _ in 0..1_000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it does not come to pass");
}

#[test]
fn a_log_whose_view_was_replaced_goes_once_no_other_proxy_can_have_it() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(60_000).await);
        let served = || Served::in_folder(options(&upstream, Some(WINDOW)), &folder);
        let (one, other) = (served().await, served().await);
        until(|| stored(&folder)[2] == 2).await;
        let mut messages = vec![typed("Fix the build.")];
        let mut body = |rounds: std::ops::Range<usize>| {
            rounds.for_each(|number| messages.extend(round(number, 20)));
            json!({"model": "m", "max_tokens": 10, "messages": messages})
        };
        let same = body(0..25);
        for proxy in [&one, &other] {
            sent(proxy, &upstream, MESSAGES.0, &same).await;
        }
        assert_eq!(stored(&folder), [2, 1, 2], "the first proxy has its log in memory");
        drop(one);
        until(|| stored(&folder)[2] == 1).await;
        sent(&other, &upstream, MESSAGES.0, &body(25..50)).await;
        assert_eq!(stored(&folder), [1, 1, 1]);
    });
}

#[test]
fn a_refusal_goes_on_with_the_log_of_its_thread() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
        let proxy = Served::in_folder(options(&upstream, None), &folder).await;
        let mut messages = vec![typed("Fix the build.")];
        for number in 0..60 {
            messages.extend(round(number, 20));
            let body = json!({"model": "m", "max_tokens": 10, "messages": messages});
            let (status, _) = sent(&proxy, &upstream, MESSAGES.0, &body).await;
            assert_eq!(status, 200);
        }
        assert_eq!(stored(&folder), [1, 1, 1]);
    });
}

#[test]
fn a_request_does_not_wait_for_a_database_that_another_process_locks() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(60_000).await);
        let proxy = Served::in_folder(options(&upstream, Some(WINDOW)), &folder).await;
        let thread = |name: &str, rounds: usize| {
            let mut messages = vec![typed(&format!("Fix the build of {name}."))];
            (0..rounds).for_each(|number| messages.extend(round(number, 20)));
            json!({"model": "m", "max_tokens": 10, "messages": messages})
        };
        sent(&proxy, &upstream, MESSAGES.0, &thread("a", 25)).await;
        let lock = rusqlite::Connection::open(folder.join("threads.db")).unwrap();
        lock.execute_batch("BEGIN IMMEDIATE").unwrap();
        for (name, rounds) in [("a", 50), ("a", 75), ("b", 25), ("b", 25), ("c", 25)] {
            let (body, began) = (thread(name, rounds), Instant::now());
            let (status, sent) = sent(&proxy, &upstream, MESSAGES.0, &body).await;
            assert!(status == 200 && sent.len() as u64 / 3 <= WINDOW, "{name}: {}", sent.len());
            assert!(began.elapsed() < Duration::from_secs(4), "{name}: {:?}", began.elapsed());
        }
        assert_eq!(stored(&folder)[1], 1);
        lock.execute_batch("ROLLBACK").unwrap();
        until(|| stored(&folder)[..2] == [3, 3]).await;
    });
}
