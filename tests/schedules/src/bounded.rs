//! A scheduler that tries all orders in which a running thread is interrupted a few times at most.
//!
//! A thread that waits or has ended is no interruption, so each order in which threads run to their
//! next wait is among them. The number of all orders grows with the factorial of the steps, that of
//! these with a power of them.

use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};

#[derive(Debug)]
pub(crate) struct Bounded {
    interruptions: usize,
    /// The choices of this order from its first step on: which of how many. The next order repeats
    /// them up to the last one that has a next.
    choices: Vec<(usize, usize)>,
    /// The steps and the interruptions of this order so far.
    step: usize,
    interrupted: usize,
    has_begun: bool,
}

impl Bounded {
    pub(crate) fn new(interruptions: usize) -> Self {
        Self { interruptions, choices: Vec::new(), step: 0, interrupted: 0, has_begun: false }
    }
}

impl Scheduler for Bounded {
    fn new_execution(&mut self) -> Option<Schedule> {
        if self.has_begun {
            while self.choices.pop_if(|(choice, count)| *choice + 1 == *count).is_some() {}
            self.choices.last_mut()?.0 += 1;
        }
        (self.has_begun, self.step, self.interrupted) = (true, 0, 0);
        Some(Schedule::new(0))
    }

    fn next_task(&mut self, ready: &[&Task], now: Option<TaskId>, _: bool) -> Option<TaskId> {
        let others = ready.iter().map(|task| task.id()).filter(|task| Some(*task) != now);
        let mut tasks: Vec<TaskId> = others.collect();
        let goes_on = tasks.len() < ready.len();
        if goes_on && self.interrupted == self.interruptions {
            tasks.clear();
        }
        // First of all the running thread goes on.
        tasks.splice(0..0, now.filter(|_| goes_on));
        if self.step == self.choices.len() {
            self.choices.push((0, tasks.len()));
        }
        let (choice, count) = self.choices.get(self.step).copied()?;
        assert_eq!(count, tasks.len(), "the story took another course in the same order");
        self.step += 1;
        self.interrupted += usize::from(goes_on && choice > 0);
        tasks.get(choice).copied()
    }

    fn next_u64(&mut self) -> u64 {
        0
    }
}
