//! Arbitrary language, typed in a session: the session continues, is compacted and ends.
//!
//! The cost of reading is tested in `reading_steps.rs`.

use std::sync::Arc;

use futures::executor::block_on;
use proptest::prelude::*;
use threadfold::{Message, ModelAgent, Session, strategy::Digest, testing::ScriptedModel};

use crate::support::{language, odd, tries::tries};

/// Sends a text as the user, and then asks for a compaction.
fn typed(text: &str) {
    let model = ScriptedModel::new(["Well.", "So be it.", "A summary."]);
    let digest = Digest { messages: 1, user_messages: 0, ..Digest::default() };
    let session = Session::builder(ModelAgent::new(Arc::new(model))).strategy(Arc::new(digest));
    let mut session = session.build().unwrap();
    for message in [text, "Go on."] {
        block_on(async { session.send_message(Message::user(message)).await }).unwrap();
    }
    // The session reports if there is nothing to compact.
    let _ = block_on(async { session.send("/compact").await });
    assert!(!session.messages().is_empty());
}

#[test]
fn a_session_that_gets_instructions_can_be_compacted() {
    for text in ["Do as you should.", "We shall", "The tests may", "You must, should, may not"] {
        typed(text);
    }
}

#[test]
fn a_session_ends_for_repeated_text_of_any_kind() {
    let parts = odd::HOSTILE.iter().map(|part| odd::repeated(part, 60));
    let pairs = odd::PAIRS.iter().map(|pair| odd::nested(*pair, 60));
    let scripts = odd::SCRIPTS.iter().map(|part| part.repeat(10));
    for text in parts.chain(pairs).chain(scripts).filter(|text| !text.trim().is_empty()) {
        typed(&text);
    }
}

proptest! {
    #![proptest_config(tries(100))]

    #[test]
    fn a_session_ends_for_any_typed_text(text in language::text()) {
        prop_assume!(!text.trim().is_empty());
        typed(&text);
    }
}
