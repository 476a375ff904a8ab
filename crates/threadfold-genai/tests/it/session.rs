//! A session over genai that overflows, is compacted and goes on.

use std::sync::Arc;

use genai::adapter::AdapterKind;
use threadfold::{
    ContextWindow, ModelAgent, Session, WireFormat, legality,
    strategy::Summarize,
    wire::{DecodeOptions, OpenAiChat},
};

use crate::support::{
    server::{Reply, Server},
    streams,
};

#[tokio::test]
async fn a_thread_that_overflows_is_compacted_and_goes_on() {
    const TOO_LONG: &str = r#"{"error":{"message":"This model's maximum context length is 16000 tokens.","code":"context_length_exceeded"}}"#;
    let say = |text: &str| Reply::events(&streams::chat_text(text, 500), 40);
    let replies = vec![
        say("Noted, the first."),
        say("Noted, the second."),
        say("Noted, the third."),
        Reply::error(400, "", TOO_LONG),
        say("SUMMARY OF WHAT WAS SAID"),
        say("All is well."),
    ];
    let server = Server::start(replies);
    let model = server.model(AdapterKind::OpenAI, "some-model");
    let agent = ModelAgent::new(Arc::new(model)).with_window(ContextWindow::new(16_000));
    let summarize = Summarize { messages: 2, user_messages: 0, ..Summarize::default() };
    let mut session =
        Session::builder(agent).strategy(Arc::new(summarize)).system("Be kind.").build().unwrap();
    for word in ["first", "second", "third"] {
        let text = format!("This is the {word}: {}", "a long story ".repeat(400));
        session.send(text).await.unwrap();
    }
    let reply = session.send("How are we?").await.unwrap();
    assert_eq!(reply.text, "All is well.");
    let bodies = server.bodies();
    assert_eq!(bodies.len(), 6, "three turns, one that was refused, a summary, the answer");
    assert!(bodies[5].len() < bodies[3].len() / 2, "{} {}", bodies[3].len(), bodies[5].len());
    assert!(bodies[5].contains("SUMMARY OF WHAT WAS SAID") && bodies[5].contains("How are we?"));
    for body in bodies {
        let read = OpenAiChat.decode_slice(body.as_bytes(), &DecodeOptions::default()).unwrap();
        assert_eq!(legality::violations(&read.messages), []);
    }
}
