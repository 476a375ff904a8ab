//! How far the proxy believes a refusal, and what it keeps of one.

use std::sync::atomic::Ordering;

use super::{MESSAGES, Served, agent::Agent, count, options, run, upstream::Upstream};
use crate::folder::Folder;

/// Compactions are due only far beyond the threads of these tests.
const LARGE: u64 = 100_000;

#[test]
fn a_provider_that_refuses_everything_is_asked_three_times_and_nothing_is_kept() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(LARGE).await);
        let proxy = Served::in_folder(options(&upstream, Some(LARGE)), &folder).await;
        let mut agent = Agent::new(&proxy.url(), MESSAGES, true);
        for number in 0..40 {
            agent.turn(number).await.unwrap();
        }
        let seen = &upstream.seen;
        for _ in 0..3 {
            seen.sizes.lock().unwrap().clear();
            seen.lies.store(usize::MAX, Ordering::Relaxed);
            let error = agent.ask().await.unwrap_err();
            assert!(error.contains("prompt is too long"), "{error}");
            let sizes = seen.sizes.lock().unwrap().clone();
            assert!(sizes.len() <= 3, "{sizes:?}");
            assert!(sizes.iter().all(|size| *size > sizes[0] / 5), "{sizes:?}");
        }
        let whole = agent.body().len();
        seen.lies.store(0, Ordering::Relaxed);
        agent.ask().await.unwrap();
        assert_eq!(seen.sizes.lock().unwrap().last(), Some(&whole));
        let rows = rusqlite::Connection::open(folder.join("threads.db")).unwrap();
        let views = "SELECT count(*) FROM proxy_views";
        assert_eq!(rows.query_row(views, [], |row| row.get::<_, i64>(0)), Ok(0));
    });
}

#[test]
fn after_one_passing_refusal_the_thread_is_sent_as_it_is() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(LARGE).await);
        let proxy = Served::in_folder(options(&upstream, Some(LARGE)), &folder).await;
        let mut agent = Agent::new(&proxy.url(), MESSAGES, true);
        for number in 0..40 {
            agent.turn(number).await.unwrap();
        }
        upstream.seen.lies.store(1, Ordering::Relaxed);
        agent.turn(40).await.unwrap();
        let last = upstream.seen.sizes.lock().unwrap().last().copied().unwrap();
        assert!(last > agent.body().len() / 3, "{last} of {}", agent.body().len());
        // The view serves the next request too, although the body is short for the window.
        agent.turn(41).await.unwrap();
        let last = upstream.seen.sizes.lock().unwrap().last().copied().unwrap();
        assert!(last < agent.body().len(), "{last} of {}", agent.body().len());
    });
}

#[test]
fn a_window_that_was_configured_too_large_is_unlearnt_for_good() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(4_000).await);
        let mut agent = Agent::new("", MESSAGES, true);
        for number in 0..40 {
            // Another process each time, with nothing but the folder.
            let proxy = Served::in_folder(options(&upstream, Some(LARGE)), &folder).await;
            agent.moved_to(&proxy.url());
            agent.turn(number).await.unwrap();
        }
        let mut other = Agent::new("", MESSAGES, true);
        let proxy = Served::in_folder(options(&upstream, Some(LARGE)), &folder).await;
        other.moved_to(&proxy.url());
        for number in 100..140 {
            other.turn(number).await.unwrap();
        }
        let refused = count(&upstream.seen.refused);
        assert!((1..=3).contains(&refused), "{refused}");
    });
}
