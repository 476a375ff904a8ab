//! Observing and planning on a host's own messages, beside messages of this crate, for threads of
//! 1,000, 10,000 and 100,000 messages.
//!
//! `cargo bench --bench foreign` prints the table that `benches/README.md` explains, relative to a
//! copy of the thread's text.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a bench may panic, and measures what it knows"
)]

use std::sync::Arc;

use futures::executor::block_on;
use threadfold::{
    Compactor, ContentBlock, Message, Role,
    compact::TrimToolResults,
    drive::Models,
    foreign::{HostMessage, HostPlan, Part, Words, shadows},
    strategy::{Brief, CompactionStrategy},
};
use yardstick::{Row, memcpy, rounds, row};

fn main() {
    yardstick::threads(measure);
}

/// A message of a host, with texts of type `S`.
struct Native<S> {
    role: Role,
    parts: Vec<NativePart<S>>,
}

enum NativePart<S> {
    Text(S),
    Thought(S),
    Call { id: S, name: S, input: S },
    Output { id: S, text: S },
}

trait Shared {
    fn words(&self) -> Words<'_>;
}

impl Shared for String {
    fn words(&self) -> Words<'_> {
        self.into()
    }
}

impl Shared for Arc<str> {
    fn words(&self) -> Words<'_> {
        self.into()
    }
}

impl<S: Shared> HostMessage for Native<S> {
    fn role(&self) -> Role {
        self.role
    }

    fn parts(&self) -> Vec<Part<'_>> {
        self.parts.iter().map(NativePart::part).collect()
    }
}

impl<S: Shared> NativePart<S> {
    fn part(&self) -> Part<'_> {
        match self {
            Self::Text(text) => Part::Text(text.words()),
            Self::Thought(text) => Part::Reasoning(text.words()),
            Self::Call { id, name, input } => Part::call(id.words(), name.words(), input.words()),
            Self::Output { id, text } => Part::result(id.words(), text.words()),
        }
    }
}

fn natives<S: for<'t> From<&'t str>>(messages: &[Message]) -> Vec<Native<S>> {
    let part = |block: &ContentBlock| match block {
        ContentBlock::Thinking(thinking) => Some(NativePart::Thought(S::from(&*thinking.text))),
        ContentBlock::ToolUse(call) => Some(NativePart::Call {
            id: S::from(&*call.id),
            name: S::from(&*call.name),
            input: S::from(call.input.as_str()),
        }),
        ContentBlock::ToolResult(result) => {
            let text = result.content.iter().find_map(ContentBlock::as_text);
            let text = S::from(text.map_or("", |text| text));
            Some(NativePart::Output { id: S::from(&*result.tool_use_id), text })
        }
        block => block.as_text().map(|text| NativePart::Text(S::from(text))),
    };
    let native = |message: &Message| Native {
        role: message.role,
        parts: message.content.iter().filter_map(part).collect(),
    };
    messages.iter().map(native).collect()
}

fn measure(messages: &[Message]) -> Vec<Row> {
    let repetitions = (200_000 / messages.len().max(1)).clamp(3, 60);
    let texts: Vec<Native<String>> = natives(messages);
    let shared: Vec<Native<Arc<str>>> = natives(messages);
    let ours = shadows(&shared);
    // Facts cost the same for both, and more than all of this.
    let fresh = || Compactor::default().with_retention(None).with_strategy(trimming());
    let observed = |observe: &dyn Fn(&mut Compactor)| {
        let mut compactor = fresh();
        observe(&mut compactor);
        move || compactor.clone()
    };
    let of_ours = observed(&|compactor| compactor.observe(&ours));
    let of_texts = observed(&|compactor| compactor.observe_host(&texts));
    let plan = |mut compactor: Compactor| {
        let planned = compactor.plan_host(&texts, Brief::default(), Models::default());
        (block_on(planned).expect("results are long"), compactor)
    };
    let plan_ours = |(mut own, mut compactor): (Vec<Message>, Compactor)| {
        let done = compactor.compact(&mut own, Brief::default(), Models::default());
        (block_on(done).expect("results are long"), own, compactor)
    };
    let (planned, _) = plan(of_texts());
    rounds(repetitions, |repetitions| {
        vec![
            memcpy(messages, repetitions),
            row("observe all, ours", repetitions, fresh, |mut it| {
                it.observe(&ours);
                it
            }),
            row("observe all, shared texts", repetitions, fresh, |mut it| {
                it.observe_host(&shared);
                it
            }),
            row("observe all, own texts", repetitions, fresh, |mut it| {
                it.observe_host(&texts);
                it
            }),
            row("observe again, ours", repetitions, &of_ours, |mut it| {
                it.observe(&ours);
                it
            }),
            row("observe again, own texts", repetitions, &of_texts, |mut it| {
                it.observe_host(&texts);
                it
            }),
            row("trim, ours", repetitions, || (ours.clone(), of_ours()), plan_ours),
            row("trim, own texts", repetitions, &of_texts, plan),
            row(
                "the plan in the host's terms",
                repetitions,
                || (),
                |()| HostPlan::new(&planned.record.plan, &ours),
            ),
        ]
    })
}

fn trimming() -> Arc<dyn CompactionStrategy> {
    Arc::new(TrimToolResults::default())
}
