//! Prepares a compaction on another thread while the conversation continues, and then adopts it.
//!
//! `cargo run --example background`
//!
//! No network, no key, no runtime: the job is a value that borrows nothing, and a plain thread of
//! the standard library runs it. The summarising model extracts sentences, slowly.

use std::{error::Error, io, sync::Arc, thread, time::Duration};

use futures::executor::block_on;
use threadfold::{
    Answer, ContextWindow, Model, ModelAgent, Request, Session, StrategyRegistry, async_trait,
    auto::AutoPolicy,
    model::{Clock, ModelError, std_clock},
    testing::{ExtractiveModel, ScriptedModel},
};
use threadfold_terminal::{Style, outline, plain, speaker};

const WINDOW: ContextWindow = ContextWindow::new(1_400);

const PAST: [(&str, &str); 5] = [
    (
        "Plan the move to the new flat.",
        "First the boxes: twenty small ones and ten big ones, from the shop in Mill Street. The \
         books go into the small ones, or nobody can lift them. Kitchen things are packed last. The \
         old flat must be empty and swept by the 5th of May, and the landlord comes at noon.",
    ),
    (
        "Who carries the piano?",
        "Two people from Keller and Sons, booked for the 3rd of May at nine. They bring straps and \
         blankets. The piano must be locked, and the key is in the blue vase. The tuner should come \
         two weeks after the move, not before, because the wood has to settle.",
    ),
    (
        "What does it cost?",
        "The movers ask 420 euros for the van and four hours, and the piano is 150 more. The boxes \
         cost 60 together. Every hour beyond the fourth is 80 euros. They want half of it before the \
         day, by transfer, and the rest in cash.",
    ),
    (
        "Is the lift big enough?",
        "No: the lift takes 1.20 metres and the piano has 1.45. They use the stairs, three floors, \
         and know it. The sofa fits if its feet are taken off. The lift has to be booked with the \
         caretaker, Mrs. Brandt, two days ahead.",
    ),
    (
        "What about the plants?",
        "They go last, in the car, and never in the van. Water them two days before and not on the \
         day. The big fig is wrapped in a sheet. Put them away from the window for a week, so that \
         they get used to the light.",
    ),
];

fn main() -> Result<(), Box<dyn Error>> {
    let style = Style::of(&io::stdout());
    let config: serde_json::Value = serde_json::from_str(
        r#"{"summarize": {"as_text": true, "messages": 2, "summary_tokens": 250}}"#,
    )?;
    let answers = PAST.iter().map(|(_, answer)| (*answer).to_owned());
    let more = [
        "The keys are at the old flat.",
        "Yes: the 3rd of May, at nine.",
        "570 euros, boxes aside.",
    ];
    let model = ScriptedModel::new(answers.chain(more.map(str::to_owned)));
    let mut session =
        Session::builder(ModelAgent::new(Arc::new(model.clone())).with_window(WINDOW))
            .strategy(StrategyRegistry::default().build(&config)?)
            .fast_model(Arc::new(Unhurried))
            .policy(AutoPolicy { enabled: false, ..AutoPolicy::default() })
            .build()?;
    for (question, _) in PAST {
        block_on(async { session.send(question).await })?;
    }
    println!("{}", style.heading("A conversation gets long"));
    meter(style, &session);

    println!("{}", style.heading("A worker summarises it while it goes on"));
    let job = session.prepare_compaction();
    let worker = thread::spawn(move || block_on(job));
    println!(
        "  {} begins to summarise {} messages",
        style.yellow("worker"),
        session.messages().len()
    );
    for question in ["Where are the keys?", "Is the date fixed?"] {
        let reply = block_on(async { session.send(question).await })?;
        println!(
            "  {} {question}\n  {} {}",
            style.bold("user  "),
            style.bold("model "),
            reply.text
        );
        println!("  {} is {}", style.yellow("worker"), busy(worker.is_finished()));
    }
    let prepared = worker.join().map_err(|_| "the worker panicked")?;
    let proposed = prepared.report().map_err(Clone::clone)?;
    println!("  {} proposes: {proposed}", style.yellow("worker"));

    println!("{}", style.heading("The prepared compaction is adopted"));
    let done = block_on(session.adopt(prepared))?;
    println!("  {}\n", done.report);
    for (index, message) in session.messages().iter().enumerate() {
        let index = style.dim(format!("{index:>3}"));
        println!(
            "  {index} {} {}",
            style.cyan(format!("{:<9}", speaker(message))),
            outline(message, 70)
        );
    }
    println!();
    meter(style, &session);
    println!("\n  What was said meanwhile follows the summary, word for word.");

    let reply = block_on(async { session.send("And what does it cost in all?").await })?;
    let sent = model.requests().last().map_or(0, |request| request.messages.len());
    println!(
        "\n  The next request has {sent} messages. {} {}",
        style.bold("model"),
        plain(&reply.text)
    );
    block_on(session.undo_compaction(done.id))?;
    println!("  After the undo the thread has {} messages again.", session.messages().len());
    Ok(())
}

fn meter(style: Style, session: &Session) {
    println!("  {}", style.meter(session.context_tokens(), WINDOW.tokens()));
}

fn busy(finished: bool) -> &'static str {
    if finished { "done" } else { "still at work" }
}

/// Extracts sentences, after a delay.
#[derive(Debug)]
struct Unhurried;

#[async_trait]
impl Model for Unhurried {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        std_clock().sleep(Duration::from_millis(300)).await;
        ExtractiveModel.complete(request).await
    }
}
