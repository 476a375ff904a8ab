//! The loop of a chat: it reads lines, runs turns, and lets a user stop a turn.

use std::{
    error::Error,
    io::{self, BufRead, IsTerminal},
    slice, thread,
};

use threadfold::{Session, message::CompactionId};
use tokio::{signal, sync::mpsc, time};

use crate::screen::Screen;

/// The source of the lines of a chat.
#[derive(Debug)]
pub(crate) enum Lines {
    /// A user types them, also while a turn runs.
    Typed(mpsc::UnboundedReceiver<String>),
    /// A file or another program: a line at a time.
    Piped(mpsc::UnboundedReceiver<String>),
    /// The script of the example.
    Written(slice::Iter<'static, &'static str>),
}

impl Lines {
    /// Returns the lines of the standard input, which a thread of its own reads, because reading
    /// blocks.
    pub(crate) fn of_stdin() -> Self {
        let (sender, lines) = mpsc::unbounded_channel();
        thread::spawn(move || {
            for line in io::stdin().lock().lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        if io::stdin().is_terminal() { Self::Typed(lines) } else { Self::Piped(lines) }
    }

    pub(crate) fn written(lines: &'static [&'static str]) -> Self {
        Self::Written(lines.iter())
    }

    async fn next(&mut self) -> Option<String> {
        match self {
            Self::Typed(lines) | Self::Piped(lines) => lines.recv().await,
            Self::Written(lines) => lines.next().map(|line| (*line).to_owned()),
        }
    }

    /// Returns the next line that a user types while a turn runs.
    async fn next_meanwhile(&mut self) -> String {
        if let Self::Typed(lines) = self
            && let Some(line) = lines.recv().await
        {
            return line;
        }
        std::future::pending().await
    }
}

/// Runs the chat until the lines end or the user types `/quit`.
pub(crate) async fn talk(
    session: &mut Session,
    screen: &mut Screen,
    mut lines: Lines,
) -> Result<(), Box<dyn Error>> {
    // The undone compactions, the latest last.
    let mut undone = Vec::new();
    loop {
        let is_typed = matches!(lines, Lines::Typed(_));
        if is_typed {
            screen.prompt();
        }
        let line = tokio::select! {
            line = lines.next() => line,
            _ = signal::ctrl_c() => None,
        };
        let Some(line) = line else { break };
        let line = line.trim();
        if is_typed {
            screen.entered();
        } else if !line.is_empty() {
            screen.typed(line);
        }
        if matches!(lines, Lines::Written(_)) {
            time::sleep(screen.reading_time()).await;
        }
        match line {
            "" => {}
            "/quit" | "/exit" => break,
            "/help" => screen.line(HELP),
            "/context" => screen.context(session.breakdown()),
            "/undo" => undone.extend(undo(session, screen).await),
            "/redo" => redo(session, screen, undone.pop()).await,
            _ => {
                let line = Some(line).filter(|line| *line != "/continue");
                if let Err(error) = turn(session, screen, &mut lines, line).await {
                    // The session can be used again, so the chat continues with the next line.
                    screen.failure(&error.to_string());
                }
                screen.meter(session.context_tokens());
            }
        }
    }
    Ok(())
}

pub(crate) const HELP: &str = "\
/compact [FOCUS]  make the thread smaller now
/context          show what the context is made of
/undo, /redo      take the last compaction back, and carry it out again
/continue         go on with a turn that broke off
/quit             end
Ctrl-C stops a turn. What you type meanwhile is sent after it.";

/// Runs one turn and the lines that are typed meanwhile. Without a line it continues the last turn.
async fn turn(
    session: &mut Session,
    screen: &mut Screen,
    lines: &mut Lines,
    line: Option<&str>,
) -> Result<(), Box<dyn Error>> {
    let handle = session.handle();
    let mut events = match line {
        Some(line) => session.send(line),
        None => session.continue_turn(),
    };
    loop {
        tokio::select! {
            // Queue a typed line before polling the turn, so that the running turn takes it.
            biased;
            _ = signal::ctrl_c() => handle.abort(),
            line = lines.next_meanwhile() => {
                handle.queue(line);
                screen.note("(sent after this turn)");
            }
            event = events.next() => {
                let Some(event) = event else { return Ok(()) };
                let event = event?;
                screen.event(&event);
                if matches!(lines, Lines::Written(_)) {
                    time::sleep(screen.event_time(&event)).await;
                }
            }
        }
    }
}

/// Undoes the last compaction.
async fn undo(session: &mut Session, screen: &mut Screen) -> Option<CompactionId> {
    let Some(id) = session.log().standing().last().map(|record| record.id) else {
        screen.note("There is no compaction to take back.");
        return None;
    };
    let before = session.messages().len();
    if let Err(error) = session.undo_compaction(id).await {
        screen.failure(&error.to_string());
        return None;
    }
    let after = session.messages().len();
    screen.done(&format!("taken back: {before} messages became {after}"));
    screen.meter(session.context_tokens());
    Some(id)
}

/// Redoes a compaction without calling a model.
async fn redo(session: &mut Session, screen: &mut Screen, undone: Option<CompactionId>) {
    let Some(id) = undone else {
        return screen.note("No compaction was taken back.");
    };
    let before = session.messages().len();
    match session.redo_compaction(id).await {
        Ok(_) => {
            let after = session.messages().len();
            screen.done(&format!("carried out again: {before} messages became {after}"));
            screen.meter(session.context_tokens());
        }
        Err(error) => screen.failure(&error.to_string()),
    }
}
