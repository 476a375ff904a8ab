//! A thread as it grows: what arrives before each request, at which time, and the answer.

use rand::{Rng, SeedableRng, rngs::Xoshiro256PlusPlus};
use threadfold::{
    Message, Role,
    message::Timestamp,
    retention::{Facts, RetentionPolicy},
    tokens::{ByteEstimate, TokenCounter},
};

/// How many times retention is measured in a course.
const MEASURED: usize = 6;

/// One in this many texts of a user comes after the user was away for longer than a cache lives.
const AWAY: u64 = 4;

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;

/// How long users are away between the texts that they type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pauses {
    /// 20 seconds to 4 minutes, and one time in four 6 minutes to 2 hours.
    Short,
    /// As people work with an agent over days: of a hundred texts, 60 come within 4 minutes, 25 within
    /// an hour, 10 within 4 hours, and 5 on the next day, after 11 to 16 hours.
    Days,
}

impl Pauses {
    /// The number of equally likely chances that decide about the kind of a pause.
    fn chances(self) -> u64 {
        match self {
            Self::Short => AWAY,
            Self::Days => 100,
        }
    }

    /// Draws a pause of the kind of this chance, in milliseconds. `below` returns a random number
    /// below its argument.
    fn draw(self, chance: u64, below: &mut impl FnMut(u64) -> u64) -> u64 {
        match self {
            Self::Short => match chance {
                0 => (360 + below(6_840)) * SECOND,
                _ => (20 + below(220)) * SECOND,
            },
            Self::Days => match chance {
                0..60 => (20 + below(220)) * SECOND,
                60..85 => 4 * MINUTE + below(56 * 60) * SECOND,
                85..95 => 60 * MINUTE + below(180) * MINUTE,
                _ => 660 * MINUTE + below(300) * MINUTE,
            },
        }
    }
}

/// A thread, request by request.
pub(crate) struct Course {
    pub(crate) steps: Vec<Step>,
    /// The window of the model, in tokens.
    pub(crate) window: u64,
}

impl Course {
    /// The tokens of system prompt and tools, which no compaction changes.
    pub(crate) fn overhead(&self) -> u64 {
        self.window / 16
    }
}

/// One request.
pub(crate) struct Step {
    /// The time at which it is sent.
    pub(crate) at: Timestamp,
    /// The messages since the last answer: what the user typed, or results.
    pub(crate) incoming: Vec<Message>,
    pub(crate) answer: Message,
    /// The facts of everything up to the answer, if retention is measured here.
    pub(crate) facts: Option<Facts>,
}

impl Course {
    /// Returns the course of a thread. Threads store no times, so they are drawn at random: 5 to 25
    /// seconds for a round of tools, and these pauses for the user.
    pub(crate) fn of(messages: &[Message], window: u64, seed: u64, pauses: Pauses) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut below = |end: u64| (random.next_u64() >> 16) % end;
        let answers = messages.iter().filter(|message| message.role == Role::Assistant).count();
        let every = answers.div_ceil(MEASURED).max(1);
        let mut facts = Facts::new(&RetentionPolicy::default());
        let (mut now, mut incoming, mut steps) = (0, Vec::new(), Vec::new());
        for message in messages {
            facts.read(message);
            let mut message = message.clone();
            // The usage was recorded in another run.
            message.make_mut().usage = None;
            if message.role != Role::Assistant || incoming.is_empty() {
                incoming.push(message);
                continue;
            }
            let is_typed = incoming.iter().any(Message::is_typed);
            let chance = below(pauses.chances());
            now += match is_typed {
                false => (5 + below(20)) * SECOND,
                true => pauses.draw(chance, &mut below),
            };
            let is_measured = (steps.len() + 1) % every == 0;
            steps.push(Step {
                at: Timestamp(now),
                incoming: std::mem::take(&mut incoming),
                answer: message,
                facts: is_measured.then(|| facts.clone()),
            });
        }
        Self { steps, window }
    }

    /// Returns the course of a thread in a window of a third of its size.
    pub(crate) fn overflowing(messages: &[Message], pauses: Pauses) -> Self {
        let tokens = ByteEstimate::TRIGGER.messages(messages);
        Self::of(messages, tokens / 3, tokens, pauses)
    }

    /// The tokens of all messages.
    pub(crate) fn tokens(&self) -> u64 {
        self.steps.iter().map(|step| step.incoming_tokens() + step.output()).sum()
    }
}

impl Step {
    pub(crate) fn incoming_tokens(&self) -> u64 {
        ByteEstimate::TRIGGER.messages(&self.incoming)
    }

    /// The tokens of the answer.
    pub(crate) fn output(&self) -> u64 {
        ByteEstimate::TRIGGER.message(&self.answer)
    }
}
