//! Compactions that a user requests, and queued texts.

use futures::executor::block_on;
use threadfold::{
    ContentBlock, ContextWindow, Message, Role, Session,
    log::{Event, EventLog},
    message::{CompactionReason, Timestamp},
    session::{CompactionEvent, SessionEvent},
    store::Journal,
};

use super::provider::{Provider, lines, reasons, unreported};
use crate::support::bench::{compactions, events, say};

const WINDOW: u64 = 200_000;

/// A session over a thread in which person and agent alternate, with messages of these sizes in
/// tokens.
fn session_of(sizes: &[u64]) -> (Session, Provider) {
    let provider = Provider::new(|_, _| Message::assistant("Fine."));
    let mut log = EventLog::new("main".parse().unwrap());
    for (place, size) in sizes.iter().enumerate() {
        let text = format!("Message {place}. {}", lines(*size));
        let message = if place % 2 == 0 { Message::user(text) } else { Message::assistant(text) };
        log.append(Timestamp(0), Event::MessageAppended(message)).unwrap();
    }
    let build = |builder: threadfold::session::SessionBuilder| builder.journal(Journal::new(log));
    (provider.session(Some(WINDOW), build), provider)
}

fn typed(messages: &[Message]) -> Vec<String> {
    let typed = messages.iter().filter(|message| message.is_typed());
    let text = |message: &Message| message.content.iter().find_map(ContentBlock::as_text).cloned();
    typed.filter_map(text).map(|text| text.to_string()).collect()
}

/// Whether a model was sent these words, as a message or as part of one.
fn was_sent(provider: &Provider, words: &str) -> bool {
    provider
        .requests()
        .iter()
        .any(|request| serde_json::to_string(&request.messages).unwrap().contains(words))
}

#[test]
fn a_rule_that_ends_with_a_modal_does_not_hang_a_compaction() {
    let provider = Provider::new(|_, _| Message::assistant(lines(2_000)));
    let mut session = provider.session(Some(WINDOW), |builder| builder);
    for text in ["Do as you should.", "Say no more than you shall.", "Go on."] {
        say(&mut session, text).unwrap();
    }
    let reported = events(&mut session, "/compact");
    assert_eq!(unreported(&reported), Vec::<String>::new());
}

#[test]
fn a_few_long_messages_become_much_shorter_on_demand() {
    let sizes: [&[u64]; 3] = [
        &[20, 26_500, 20, 26_500, 20, 26_500, 20, 26_500],
        &[20, 53_000, 20, 53_000],
        &[20, 106_000],
    ];
    for sizes in sizes {
        let (mut session, _) = session_of(sizes);
        let before = session.context_tokens();
        assert!((105_000..110_000).contains(&before), "{before}");
        let reported = events(&mut session, "/compact");
        assert_eq!(unreported(&reported), Vec::<String>::new());
        let after = session.context_tokens();
        assert!(after * 4 <= before * 3, "{} messages: {before} to {after}", sizes.len());
    }
}

#[test]
fn a_compaction_on_demand_saves_as_much_as_a_prepared_one() {
    let sizes = [16_000; 12];
    let (mut session, _) = session_of(&sizes);
    let prepared = block_on(session.prepare_compaction());
    let prepared = prepared.report().unwrap().after.tokens;

    let (mut session, _) = session_of(&sizes);
    let before = session.context_tokens();
    events(&mut session, "/compact");
    let after = session.context_tokens();
    assert!(before > 190_000 && after <= WINDOW / 2, "{before} to {after}");
    assert!(after.abs_diff(prepared) * 10 <= prepared, "{after}, prepared {prepared}");
}

#[test]
fn two_messages_are_compacted_on_demand() {
    let (mut session, provider) = session_of(&[10, 3_000]);
    let reported = events(&mut session, "/compact");
    assert!(
        matches!(compactions(&reported).last(), Some(CompactionEvent::Completed { .. })),
        "{reported:?}"
    );
    assert_eq!(session.log().standing().count(), 1);
    assert_eq!(provider.conversation().len(), 0, "no model answers a command");
    assert!(typed(session.messages())[0].starts_with("Message 0."));
    let line = |event: &Result<SessionEvent, _>| matches!(event, Ok(SessionEvent::Notice { text }) if text.to_lowercase().contains("compacted"));
    assert!(reported.iter().any(line), "{reported:?}");
}

#[test]
fn compacting_and_continuing_adds_no_text_in_the_name_of_the_user() {
    let (mut session, provider) = session_of(&[10, 3_000, 10, 3_000, 10, 3_000]);
    let before = typed(session.messages());
    let reported = events(&mut session, "@compact");
    assert_eq!(reasons(&reported), [CompactionReason::Manual { instructions: None }]);
    let after = typed(session.messages());
    assert!(after.iter().all(|text| before.contains(text)), "{after:?}");
    let sent = provider.conversation().pop().unwrap().messages;
    assert_eq!(sent.last().unwrap().role, Role::User);
    assert_eq!(session.messages().last().unwrap().content[0].as_text().unwrap().as_str(), "Fine.");
}

#[test]
fn a_command_that_is_queued_is_carried_out() {
    for (command, follows) in
        [("/compact the parser", None), ("@compact And now?", Some("And now?"))]
    {
        let (mut session, provider) = session_of(&[10, 3_000, 10, 3_000, 10, 3_000]);
        let handle = session.handle();
        let mut stream = session.send("Go on.");
        let mut reported = vec![block_on(stream.next()).unwrap()];
        handle.queue(command);
        while let Some(event) = block_on(stream.next()) {
            reported.push(event);
        }
        drop(stream);
        let reason = reasons(&reported);
        assert!(matches!(reason[..], [CompactionReason::Manual { .. }]), "{command}: {reason:?}");
        assert_eq!(unreported(&reported), Vec::<String>::new());
        assert!(!was_sent(&provider, command) && !was_sent(&provider, "@compact"), "{command}");
        assert_eq!(provider.conversation().len(), 1 + usize::from(follows.is_some()), "{command}");
        let last = typed(session.messages()).pop();
        assert!(follows.is_none() || last.as_deref() == follows, "{command}: {last:?}");
    }
}

#[test]
fn texts_queued_while_idle_come_before_the_next_typed_text() {
    let (mut session, _) = session_of(&[]);
    session.handle().queue("First.");
    session.handle().queue("Second.");
    say(&mut session, "Third.").unwrap();
    assert_eq!(typed(session.messages()), ["First.", "Second.", "Third."]);
}

#[test]
fn a_command_queued_while_idle_is_carried_out_first() {
    let (mut session, provider) = session_of(&[10, 3_000, 10, 3_000, 10, 3_000]);
    session.handle().queue("/compact");
    let reported = events(&mut session, "Go on.");
    assert_eq!(reasons(&reported), [CompactionReason::Manual { instructions: None }]);
    assert!(!was_sent(&provider, "/compact"));
    let sent = provider.conversation().remove(0).messages;
    assert!(sent.iter().any(Message::is_summary), "it is compacted before the message is sent");
    assert_eq!(session.window(), Some(ContextWindow::new(WINDOW)));
}
