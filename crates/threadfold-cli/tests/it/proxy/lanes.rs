//! A compaction keeps no other request waiting.

use std::sync::{Arc, atomic::Ordering};

use tokio::sync::Semaphore;

use threadfold::{
    CompactionStrategy,
    strategy::{Ask, KeepRecent, Proposal, StrategyError, View},
};
use threadfold_testing::shared::Folder;

use super::{MESSAGES, Served, WINDOW, agent::Agent, count, options, run, upstream::Upstream};

/// More than the proxy compacts at once, and more than it reads at once.
const THREADS: usize = 40;

/// Compacts only when the gate is open.
#[derive(Debug)]
pub(super) struct Gated {
    pub(super) gate: Arc<Semaphore>,
    pub(super) waiting: Arc<Semaphore>,
}

#[threadfold::async_trait]
impl CompactionStrategy for Gated {
    fn name(&self) -> &str {
        "gated"
    }

    async fn propose(&self, view: &View, ask: &mut Ask<'_>) -> Result<Proposal, StrategyError> {
        self.waiting.add_permits(1);
        let _opened = self.gate.acquire().await;
        KeepRecent::default().propose(view, ask).await
    }
}

#[test]
fn requests_are_answered_while_compactions_of_other_threads_wait() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
        let (gate, waiting) = (Arc::new(Semaphore::new(1)), Arc::new(Semaphore::new(0)));
        let gated = Gated { gate: Arc::clone(&gate), waiting: Arc::clone(&waiting) };
        let options =
            super::ProxyOptions { strategy: Arc::new(gated), ..options(&upstream, Some(WINDOW)) };
        let proxy = Served::in_folder(options, &folder).await;
        // A thread that has its view already, and threads that are about to need one.
        let mut compacted = Agent::new(&proxy.url(), MESSAGES, true);
        let mut number = 0;
        while waiting.available_permits() == 0 {
            compacted.turn(number).await.unwrap();
            number += 1;
        }
        let closed = gate.acquire().await.unwrap();
        let due: Vec<Agent> = (0..THREADS)
            .map(|thread| {
                let mut agent = Agent::new(&proxy.url(), MESSAGES, true);
                agent.messages = compacted.messages.clone();
                agent.messages[0] = threadfold::Message::user(format!("Thread {thread}."));
                agent
            })
            .collect();
        let before = count(&upstream.seen.answered);
        let mut asked = tokio::task::JoinSet::new();
        for mut agent in due {
            asked.spawn(async move { agent.turn(number).await });
        }
        // One of them holds its lane now, and the others wait for it.
        let _ = waiting.acquire_many(2).await.unwrap();
        compacted.turn(number).await.unwrap();
        let mut short = Agent::new(&proxy.url(), MESSAGES, true);
        short.turn(0).await.unwrap();
        assert_eq!(count(&upstream.seen.answered), before + 4, "only these two were answered");
        drop(closed);
        for done in asked.join_all().await {
            done.unwrap();
        }
        assert_eq!(upstream.seen.refused.load(Ordering::Relaxed), 0);
    });
}
