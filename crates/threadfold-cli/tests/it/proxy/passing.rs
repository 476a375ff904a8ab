//! An agent in the manner of aider: it writes answers for the model, and moves a file to the end of its
//! thread with each request.

use threadfold::{Message, ThreadStore};
use threadfold_sqlite::SqliteStore;
use threadfold_testing::shared::Folder;

use super::{Agent, Served, WINDOW, count, options, run, upstream::DIALECTS, upstream::Upstream};

/// The messages of a turn: an output, the agent's own answer to it, and what the user types.
fn turn(number: usize, lines: usize) -> [Message; 3] {
    let output = format!("step {number}: a line of the output\n").repeat(lines);
    [
        Message::user(format!("I ran a command. Its output:\n{output}end of {number}")),
        Message::assistant("Ok."),
        Message::user(format!("Note step {number}.")),
    ]
}

#[test]
fn an_output_that_no_model_has_read_stays_whole_and_the_thread_stays_one() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
        let proxy = Served::in_folder(options(&upstream, Some(WINDOW)), &folder).await;
        let mut agent = Agent::new(&proxy.url(), DIALECTS[1], true);
        agent.tools = Vec::new();
        let (mut past, mut cut) = (vec![Message::user("Begin."), Message::assistant("Yes.")], 0);
        for number in 0..60 {
            let lines = if number % 7 == 6 { 72 } else { 24 };
            let newest = turn(number, lines);
            let file =
                Message::user(format!("The file now:\n{}", "a step is noted\n".repeat(number)));
            agent.messages.clone_from(&past);
            agent.messages.extend([file, Message::assistant("Ok, I edit that file.")]);
            agent.messages.extend(newest.clone());
            agent.ask().await.unwrap();
            let (_, _, sent) = upstream.seen.last.lock().unwrap().clone();
            let sent = String::from_utf8_lossy(&sent).into_owned();
            let line = format!("step {number}: a line of the output");
            cut += usize::from(sent.matches(&line).count() != lines);
            past.extend(newest);
            past.push(Message::assistant(format!("Step {number} is noted.")));
        }
        assert_eq!(*upstream.seen.illegal.lock().unwrap(), Vec::<String>::new());
        assert_eq!((count(&upstream.seen.refused), cut), (0, 0));
        let store = SqliteStore::open(folder.join("threads.db")).unwrap();
        assert_eq!(store.list().await.unwrap().len(), 1);
    });
}
