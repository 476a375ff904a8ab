//! A session over genai: it overflows, is compacted and continues.

use std::sync::Arc;

use genai::adapter::AdapterKind;
use threadfold::{
    ContextWindow, Message, ModelAgent, Session, async_trait, legality,
    message::{ToolSpec, ToolUse},
    model::{Tool, ToolContext, ToolOutput},
    strategy::Summarize,
    wire::{DecodeOptions, Dialect},
};

use crate::support::{
    server::{Reply, Server},
    streams,
};

#[tokio::test]
async fn a_thread_that_overflows_is_compacted_and_continues() {
    const TOO_LONG: &str = r#"{"error":{"message":"This model's maximum context length is 16000 tokens.","code":"context_length_exceeded"}}"#;
    let say = |text: &str| Reply::events(&streams::chat_text(text, 500), 40);
    let replies = vec![
        say("Noted, the first."),
        say("Noted, the second."),
        say("Noted, the third."),
        // The request before was nearly as long and was answered, so the first refusal is doubted.
        Reply::error(400, "", TOO_LONG),
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
    assert_eq!(bodies.len(), 7, "three turns, one that was refused twice, a summary, the answer");
    assert!(bodies[6].len() < bodies[3].len() / 2, "{} {}", bodies[3].len(), bodies[6].len());
    assert!(bodies[6].contains("SUMMARY OF WHAT WAS SAID") && bodies[6].contains("How are we?"));
    for body in bodies {
        let read =
            Dialect::OpenAiChat.decode_slice(body.as_bytes(), &DecodeOptions::default()).unwrap();
        assert_eq!(legality::violations(&read.messages), []);
    }
}

/// A tool with a name that most providers refuse.
#[derive(Debug)]
struct Greet;

#[async_trait]
impl Tool for Greet {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("greet all", "Greets.", serde_json::json!({"type": "object"}))
    }

    async fn call(
        &self,
        _: &ToolUse,
        _: &ToolContext<'_>,
    ) -> Result<ToolOutput, Box<dyn std::error::Error + Send + Sync>> {
        Ok("Greetings.".into())
    }
}

#[tokio::test]
async fn calls_of_a_tool_with_a_refused_name_reach_the_tool() {
    let call = r#"{"index":0,"id":"call_1","type":"function","function":{"name":"greet_all","arguments":"{}"}}"#;
    let called = format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{call}]}},\
         \"finish_reason\":\"tool_calls\"}}]}}\n\ndata: [DONE]\n\n"
    );
    let said = streams::chat_text("Done.", 50);
    let server = Server::start(vec![Reply::events(&called, 40), Reply::events(&said, 40)]);
    let model = server.model(AdapterKind::OpenAI, "some-model");
    let agent = ModelAgent::new(Arc::new(model)).with_window(ContextWindow::new(16_000));
    let mut session = Session::builder(agent).tool(Arc::new(Greet)).build().unwrap();
    assert_eq!(session.send("Greet us.").await.unwrap().text, "Done.");
    let called: Vec<_> = session.messages().iter().flat_map(Message::tool_uses).collect();
    assert!(called.len() == 1 && called[0].name == "greet all", "{called:?}");
    let bodies = server.bodies();
    assert!(bodies[1].contains("Greetings.") && bodies[1].contains(r#""name":"greet_all""#));
}
