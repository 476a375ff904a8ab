//! Two hundred users at once, who leave, queue texts and abort in the middle of turns.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use axum::Router;
use server::router;
use threadfold::{ThreadStore, legality, log::Event};
use tokio::{runtime::Handle, task::JoinSet, time};

use crate::{client::Client, file::File, judge::Judge};

const USERS: usize = 200;
const TURNS: usize = 12;

/// The turn in which a second text is queued, and the turn that the user aborts.
const QUEUES: usize = 9;
const STOPS: usize = 10;

/// The maximum number of idle sessions, so small that most turns begin with a load.
const IDLE: usize = 32;

/// The observations of one user.
#[derive(Debug, Default)]
struct Story {
    ended: usize,
    left: usize,
    continued: usize,
    queued: usize,
    aborted: usize,
}

/// Returns the turn in which a user leaves, and the state of the model then. Before a summary the
/// thread must hold something to summarise.
fn leaves(user: usize) -> (usize, &'static str) {
    match user % 4 {
        0 => (1 + user % 8, "stop-before"),
        1 => (1 + user % 8, "stop-within"),
        2 => (1 + user % 8, "stop-in-tool"),
        _ => (5, "summary"),
    }
}

/// Whether a user continues the turn that was left. A command is not a turn.
fn goes_on(user: usize) -> bool {
    user % 8 < 3
}

async fn user(number: usize, judge: Arc<Judge>, router: Router) -> Story {
    let client = Client { router, thread: format!("u{number}") };
    let mut story = Story::default();
    for turn in 0..TURNS {
        let name = format!("u{number}-t{turn}");
        let stop = judge.stop(&name);
        let (leaves_in, place) = leaves(number);
        if turn == leaves_in {
            let text = match place {
                "summary" => format!("/compact stop-at:{name} if you can"),
                _ => format!("{name} {place}"),
            };
            let mut events = client.send(&text).await;
            events.until(stop.arrived.notified()).await;
            drop(events);
            story.left += 1;
            if goes_on(number) {
                assert_eq!(client.show().await["unfinished"], true);
                stop.open.notify_one();
                let kinds = client.go_on().await.kinds().await;
                assert_eq!(kinds.last().map(String::as_str), Some("turn_ended"), "{name}");
                story.continued += 1;
            }
        } else if turn == QUEUES {
            let mut events = client.send(&format!("{name} stop-within")).await;
            events.until(stop.arrived.notified()).await;
            client.queue(&format!("{name}-queued plain")).await;
            assert_eq!(client.show().await["busy"], true);
            stop.open.notify_one();
            let kinds = events.kinds().await;
            story.queued += kinds.iter().filter(|kind| *kind == "queued_message").count();
            story.ended += kinds.iter().filter(|kind| *kind == "turn_ended").count();
        } else if turn == STOPS {
            let mut events = client.send(&format!("{name} stop-within")).await;
            events.until(stop.arrived.notified()).await;
            client.abort().await;
            let kinds = events.kinds().await;
            assert_eq!(kinds.last().map(String::as_str), Some("aborted"));
            story.aborted += 1;
        } else {
            let way = if (number + turn).is_multiple_of(2) { "plain" } else { "tool" };
            let kinds = client.send(&format!("{name} {way}")).await.kinds().await;
            assert_eq!(kinds.last().map(String::as_str), Some("turn_ended"), "{name}");
            story.ended += 1;
        }
    }
    story
}

/// Waits until the runtime has no task. Nothing wakes this future, so it polls in a loop.
async fn wait_until_no_task_runs() {
    let ended = async {
        while Handle::current().metrics().num_alive_tasks() > 0 {
            tokio::task::yield_now().await;
        }
    };
    time::timeout(Duration::from_secs(20), ended).await.expect("a task is left");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_users_who_disconnect_queue_and_stop_lose_nothing() {
    let (file, judge) = (File::new(), Arc::new(Judge::default()));
    let server = router(judge.threads(Arc::new(file.open()), IDLE));
    let mut users = JoinSet::new();
    for number in 0..USERS {
        users.spawn(user(number, Arc::clone(&judge), server.clone()));
    }
    let mut all = Story::default();
    while let Some(story) = users.join_next().await {
        let story = story.unwrap();
        all.ended += story.ended;
        all.left += story.left;
        all.continued += story.continued;
        all.queued += story.queued;
        all.aborted += story.aborted;
    }
    assert_eq!((all.left, all.queued, all.aborted), (USERS, USERS, USERS));
    assert_eq!(all.continued, USERS / 8 * 3);
    // All turns except those that were left or aborted, and one more for each queued text.
    assert_eq!(all.ended, USERS * (TURNS - 2 + 1));

    // A client that leaves must drop all work of its turn.
    wait_until_no_task_runs().await;
    assert_eq!(judge.running.load(Ordering::SeqCst), 0, "an answer or a tool is left");
    assert_eq!(*judge.complaints.lock().unwrap(), [""; 0]);
    drop(server);
    every_thread_goes_on(&judge, Arc::new(file.open())).await;
    assert_eq!(*judge.complaints.lock().unwrap(), [""; 0]);
}

/// Opens every thread in another server over the same database, and runs one more turn.
async fn every_thread_goes_on(judge: &Arc<Judge>, store: Arc<dyn ThreadStore>) {
    assert_eq!(store.list().await.unwrap().len(), USERS);
    let server = router(judge.threads(Arc::clone(&store) as _, IDLE));
    for number in 0..USERS {
        let thread = format!("u{number}");
        let log = store.load(&thread.parse().unwrap()).await.unwrap().log;
        assert_eq!(legality::violations(&log.replay()), [], "{thread}");
        assert!(log.standing().count() > 0, "{thread} was never compacted");
        let typed = log.events().iter().filter(
            |logged| matches!(&logged.event, Event::MessageAppended(message) if message.is_typed()),
        );
        // All texts that were sent, except the command, and the queued text.
        let commands = usize::from(leaves(number).1 == "summary");
        assert_eq!(typed.count(), TURNS - commands + 1, "{thread}");
        let client = Client { router: server.clone(), thread };
        let before = client.show().await["messages"].as_array().unwrap().len();
        let kinds = client.send(&format!("u{number}-again plain")).await.kinds().await;
        assert_eq!(kinds.last().map(String::as_str), Some("turn_ended"));
        assert!(before > 0 && client.show().await["busy"] == false);
    }
}
