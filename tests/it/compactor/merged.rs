//! Bodies in which a codec merges neighbouring messages of the user: the task, a summary and the newest
//! question are one message then.

use std::sync::Arc;

use futures::executor::block_on;
use serde_json::json;
use threadfold::{
    Compactor, Message, Request, Role, StrategyRegistry,
    message::{ToolResult, ToolUse},
    testing::ExtractiveModel,
    tokens::{ByteEstimate, TokenCounter},
    wire::{DecodeOptions, Dialect, EncodeOptions},
};

const TASK: &str = "Mend the parser.";

/// Longer than the room of a list, so that only the message itself can keep it.
fn question() -> String {
    let details = " Keep the table of tides with all of its rows, and write ships in italics.";
    format!("Translate the third part.{} Sign it with ZEBRA-77.", details.repeat(12))
}

#[test]
fn the_newest_question_stays_in_a_body_that_is_compacted_again_and_again() {
    let question = question();
    for name in ["ladder", "digest", "rollover", "summarize"] {
        for dialect in Dialect::ALL {
            let strategy = StrategyRegistry::default().get(name).unwrap().clone();
            let mut compactor = Compactor::default().with_strategy(strategy);
            let said = vec![
                Message::user(TASK),
                Message::assistant("I will. ".repeat(50)),
                Message::user(&*question),
            ];
            let write = |request: &Request| {
                let encoded = dialect.encode(request, &EncodeOptions::default());
                encoded.body.as_str().to_owned()
            };
            let mut body = write(&Request::new(said));
            let mut compactions = 0;
            for step in 0..24 {
                let options = DecodeOptions::default();
                let mut request = dialect.decode_slice(body.as_bytes(), &options).unwrap();
                let messages = Arc::make_mut(&mut request.messages);
                let id = format!("call_{step}");
                let call = ToolUse::new(&*id, "read", json!({"path": format!("src/{step}.rs")}));
                let text = format!("line of file {step}; ").repeat(30);
                messages.push(Message::new(Role::Assistant, vec![call.into()]));
                messages.push(Message::new(Role::User, vec![ToolResult::text(id, text).into()]));
                if ByteEstimate::TRIGGER.request(&request) > 1_500 {
                    let done = compactor.compact_request(&mut request, 900, &ExtractiveModel);
                    compactions += usize::from(block_on(done).is_ok());
                }
                let is_it = |message: &Message| {
                    let mut typed = message.typed_content().filter_map(|block| block.as_text());
                    typed.any(|text| text.contains(&question))
                };
                let is_kept = request.messages.iter().any(is_it);
                assert!(is_kept, "{name}, {dialect:?}, step {step}: {:#?}", request.messages);
                body = write(&request);
            }
            assert!(compactions > 2, "{name}, {dialect:?}: {compactions} compactions");
        }
    }
}
