//! Kills a session in the middle of its work and resumes it: nothing is lost.
//!
//! `cargo run --example resume`
//!
//! The log of the thread is a file of lines. A first session works, is compacted, and is killed
//! while a tool runs and before its last line is complete. A second session over the same file
//! continues, and can even undo the compaction from before the kill. The example checks every
//! statement before it prints it, and ends with an error if one is false.

use std::{
    env,
    error::Error,
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    process,
    sync::Arc,
};

use futures::executor::block_on;
use serde_json::{Value, json};
use threadfold::{
    ContentBlock, Message, ModelAgent, Role, Session, ThreadStore, async_trait,
    message::{CompactionId, ThreadId, ToolSpec, ToolUse},
    model::{Tool, ToolContext, ToolOutput},
    session::SessionEvent,
    store::{Journal, JsonlStore},
    strategy::KeepRecent,
    testing::{Scripted, ScriptedModel},
};
use threadfold_terminal::{Style, first_line, outline, plain, speaker, thousands};

/// Checks a statement before the example prints it.
fn check(holds: bool, what: &str) -> Result<(), Box<dyn Error>> {
    if holds { Ok(()) } else { Err(format!("it does not hold that {what}").into()) }
}

fn main() -> Result<(), Box<dyn Error>> {
    let style = Style::of(&io::stdout());
    let folder = Folder::new()?;
    let thread: ThreadId = "lighthouse".parse()?;
    let file = folder.0.join("lighthouse.jsonl");

    println!("{}", style.heading("A session at work"));
    let killed = work_and_die(style, &folder.0, &thread)?;
    println!("\n{}", style.red("Killed, while the tool was running."));
    tear(&file)?;
    show_file(style, &file)?;

    println!("{}", style.heading("Another session over the same file"));
    let store = Arc::new(JsonlStore::open(&folder.0)?);
    let loaded = block_on(store.load(&thread))?;
    let torn = loaded.torn.ok_or("the torn line was not found")?;
    println!("{torn} bytes of a torn last line are skipped; the next write removes them.");
    let model = ScriptedModel::new(["I am. I had begun to count the steps; shall I count again?"]);
    let mut session = session(&model, store, &thread)?;
    check(session.messages()[..] == killed.messages, "the thread came back as it was")?;
    println!(
        "{} the {} messages of the thread came back, equal to those before the kill.",
        style.green("✓"),
        killed.messages.len()
    );
    go_on(style, &mut session, &model)?;
    undo(style, &mut session, &killed)?;
    close(style, &session, &file)
}

/// The state when the session was killed.
struct Killed {
    messages: Vec<Message>,
    /// The thread before the compaction, and the id of the compaction.
    before: Vec<Message>,
    compaction: CompactionId,
}

/// Runs a session that is compacted, and drops it while its tool runs.
fn work_and_die(style: Style, folder: &Path, thread: &ThreadId) -> Result<Killed, Box<dyn Error>> {
    let call = ToolUse::new("call_1", "count_steps", json!({"tower": "north"}));
    let script = [
        Scripted::from("A lighthouse. I have its plans here, ask me anything."),
        "The lamp was lit in 1874, says the stone above the door.".into(),
        "Granite, brought by sea from the quarry at Kemnay.".into(),
        Message::new(Role::Assistant, vec![ContentBlock::text("Let me count."), call.into()])
            .into(),
    ];
    let store = Arc::new(JsonlStore::open(folder)?);
    let mut session = session(&ScriptedModel::new(script), store, thread)?;
    for text in ["What are we looking at?", "How old is it?", "What is it built of?"] {
        say(style, &mut session, text)?;
    }
    let before = session.messages().to_vec();
    say(style, &mut session, "/compact")?;
    let compaction = session.log().standing().next().ok_or("nothing was compacted")?.id;

    let text = "How many steps lead to the lamp, and when was it lit?";
    println!("{}  {text}", style.bold("user     "));
    let mut events = session.send(text);
    while let Some(event) = block_on(events.next()) {
        if let SessionEvent::ToolStarted { name, .. } = event? {
            println!("{}  {name} ...", style.cyan("tool     "));
            break;
        }
    }
    // Dropping the stream and the session loses everything that was not written.
    drop(events);
    Ok(Killed { messages: session.messages().to_vec(), before, compaction })
}

/// Returns a session over the file of the thread.
fn session(
    model: &ScriptedModel,
    store: Arc<JsonlStore>,
    thread: &ThreadId,
) -> Result<Session, Box<dyn Error>> {
    let journal = block_on(Journal::open(store, thread.clone()))?;
    Ok(Session::builder(ModelAgent::new(Arc::new(model.clone())))
        .journal(journal)
        .tool(Arc::new(CountSteps))
        .strategy(Arc::new(KeepRecent { messages: 2, ..KeepRecent::default() }))
        .build()?)
}

fn say(style: Style, session: &mut Session, text: &str) -> Result<(), Box<dyn Error>> {
    println!("{}  {text}", style.bold("user     "));
    let reply = block_on(session.send(text).into_future())?;
    let who = if reply.stop_reason.is_some() { "assistant" } else { "notice   " };
    println!("{}  {}", style.bold(who), plain(&reply.text));
    Ok(())
}

/// Appends the beginning of a line, as a power failure in the middle of a write leaves it.
fn tear(file: &Path) -> Result<(), Box<dyn Error>> {
    let mut file = OpenOptions::new().append(true).open(file)?;
    Ok(file.write_all(br#"{"seq":10,"at":17"#)?)
}

fn show_file(style: Style, file: &Path) -> Result<(), Box<dyn Error>> {
    println!("{}", style.heading("What is in the file"));
    for line in fs::read_to_string(file)?.lines() {
        match serde_json::from_str::<Value>(line) {
            Ok(event) => println!("  {}", told(style, &event)),
            Err(_) => println!("  {} {}", style.red("torn"), style.red(line)),
        }
    }
    Ok(())
}

/// Describes one line of the file in a few words.
fn told(style: Style, line: &Value) -> String {
    let Some(seq) = line.get("seq").and_then(Value::as_u64) else {
        return style.dim(first_line(&line.to_string(), 70));
    };
    let event = line.get("event").and_then(Value::as_object).and_then(|event| event.iter().next());
    let Some((kind, event)) = event else { return String::new() };
    let kind = style.cyan(format!("{kind:<16}"));
    let message: Option<Message> = serde_json::from_value(event.clone()).ok();
    let count = |side: &str| event.pointer(&format!("/report/{side}/messages"));
    let words = match (message, count("before"), count("after"), event.get("text")) {
        (Some(message), ..) => format!("{:<9}  {}", speaker(&message), outline(&message, 44)),
        (None, Some(before), Some(after), _) => format!("{before} to {after} messages"),
        (None, _, _, Some(text)) => first_line(text.as_str().unwrap_or_default(), 56),
        (None, ..) => first_line(&event.to_string(), 56),
    };
    format!("{} {kind} {words}", style.dim(format!("{seq:>4}")))
}

/// Continues in the new session, which first answers the open call.
fn go_on(style: Style, session: &mut Session, model: &ScriptedModel) -> Result<(), Box<dyn Error>> {
    let before = session.messages().to_vec();
    println!();
    say(style, session, "Are you still there?")?;
    let request = model.requests().pop().ok_or("the model was asked nothing")?;
    check(request.messages.starts_with(&before), "the model was sent the whole thread")?;
    let answered = request.messages.get(before.len()).ok_or("the call was not answered")?;
    let result = answered.tool_results().next().ok_or("the call was not answered")?;
    check(result.tool_use_id == "call_1" && result.is_error, "the open call got an error")?;
    println!("\nWhat the model received:\n");
    for (index, message) in request.messages.iter().enumerate() {
        let mark = if index < before.len() { " " } else { "+" };
        println!("  {} {:<9}  {}", style.green(mark), speaker(message), outline(message, 62));
    }
    println!("\n{} the call that the kill left open is answered.", style.green("✓"));
    Ok(())
}

/// Undoes the compaction of the killed session in the new one.
fn undo(style: Style, session: &mut Session, killed: &Killed) -> Result<(), Box<dyn Error>> {
    println!("{}", style.heading("The compaction from before the kill is undone"));
    let compacted = session.messages().len();
    block_on(session.undo_compaction(killed.compaction))?;
    check(session.messages().starts_with(&killed.before), "what was compacted is back")?;
    println!(
        "{} {} messages became {}, and the first {} are what they were before it, word for word.",
        style.green("✓"),
        compacted,
        session.messages().len(),
        killed.before.len()
    );
    Ok(())
}

fn close(style: Style, session: &Session, file: &Path) -> Result<(), Box<dyn Error>> {
    let folder = file.parent().ok_or("the file is nowhere")?;
    let loaded = block_on(JsonlStore::open(folder)?.load(session.thread_id()))?;
    check(loaded.torn.is_none(), "nothing is torn any more")?;
    check(loaded.log == *block_on(session.whole_log())?, "the file holds the log")?;
    check(loaded.log.replay() == session.messages()[..], "the file replays to the thread")?;
    println!(
        "{} the file, {} bytes in {} events, replays to exactly this thread.",
        style.green("✓"),
        thousands(fs::metadata(file)?.len()),
        loaded.log.len()
    );
    Ok(())
}

/// A tool that takes longer than this example runs.
#[derive(Debug)]
struct CountSteps;

#[async_trait]
impl Tool for CountSteps {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("count_steps", "Counts the steps of a tower.", json!({"type": "object"}))
    }

    async fn call(
        &self,
        _: &ToolUse,
        _: &ToolContext<'_>,
    ) -> Result<ToolOutput, Box<dyn std::error::Error + Send + Sync>> {
        std::future::pending().await
    }
}

/// A temporary folder, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Self> {
        let path = env::temp_dir().join(format!("threadfold-resume-{}", process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
