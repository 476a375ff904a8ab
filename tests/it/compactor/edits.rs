//! Vectors that the host changes between compactions, and bodies that are decoded anew each time.

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures::executor::block_on;
use threadfold::{
    Compactor, ContentBlock, Message, Request, Role,
    auto::Refusal,
    compactor::RequestStep,
    message::{Redactor, Timestamp, ToolResult, ToolUse},
    strategy::{Brief, Summarize},
    testing::ExtractiveModel,
    wire::{DecodeOptions, Dialect, EncodeOptions},
};

use super::support::{RULE, long};

fn rules(compactor: &Compactor) -> Vec<String> {
    compactor.rules().active().map(|rule| rule.text.to_string()).collect()
}

fn round(messages: &mut Vec<Message>, text: &str) {
    messages.extend([Message::user(text), Message::assistant(long("Well."))]);
}

fn compacted(compactor: &mut Compactor, messages: &mut Vec<Message>) {
    messages.push(Message::user("And now?"));
    block_on(compactor.compact(messages, 600, &ExtractiveModel)).unwrap();
    messages.push(Message::assistant("Now this."));
}

#[test]
fn messages_that_the_host_cuts_off_are_forgotten_and_compacted_ones_are_not() {
    let (mut compactor, mut messages) = (Compactor::default(), Vec::new());
    round(&mut messages, RULE);
    round(&mut messages, &long("Go on."));
    compacted(&mut compactor, &mut messages);
    let kept = messages.len();
    round(&mut messages, &long("Always answer in French."));
    let mut longer = messages.clone();
    compacted(&mut compactor, &mut longer);
    assert_eq!(rules(&compactor), [RULE, "Always answer in French."]);
    messages.truncate(kept);
    compactor.observe(&messages);
    assert_eq!(rules(&compactor), [RULE]);
    // A message in the middle was changed: the summary is still there.
    *messages.last_mut().unwrap() = Message::assistant("Now that.");
    compactor.observe(&messages);
    assert_eq!(rules(&compactor), [RULE]);
    // A vector without the summary is another thread.
    compactor.observe(&[Message::user("Only answer in French.")]);
    assert_eq!(rules(&compactor), [""; 0]);
    // The compactor recognises the earlier vector again.
    compactor.observe(&messages);
    assert_eq!(rules(&compactor), [RULE]);
}

#[test]
fn a_host_may_go_back_to_the_vector_before_the_last_compaction() {
    let (mut compactor, mut messages) = (Compactor::default(), Vec::new());
    round(&mut messages, RULE);
    round(&mut messages, &long("Go on."));
    compacted(&mut compactor, &mut messages);
    let first = messages.clone();
    round(&mut messages, &long("Always answer in French."));
    compacted(&mut compactor, &mut messages);
    assert_eq!(rules(&compactor), [RULE, "Always answer in French."]);
    compactor.observe(&first);
    assert_eq!(rules(&compactor), [RULE]);
    let mut again = first;
    round(&mut again, &long("Go on."));
    compacted(&mut compactor, &mut again);
    assert!(format!("{again:?}").contains(RULE));
    assert_eq!(rules(&compactor), [RULE]);
}

#[test]
fn a_host_may_go_back_to_the_vector_before_a_request_that_was_given_up() {
    let (mut compactor, mut messages) = (Compactor::default(), Vec::new());
    round(&mut messages, RULE);
    round(&mut messages, &long("Go on."));
    compacted(&mut compactor, &mut messages);
    (0..20).for_each(|_| round(&mut messages, &long("Go on.")));
    messages.push(Message::user("And now?"));
    let unrefused = messages.clone();
    compactor.observe(&messages);
    let (now, mut compactions) = (Timestamp(0), 0);
    let mut step = compactor.before_request(now);
    let before = loop {
        step = match step {
            RequestStep::Send { .. } => compactor.refused(now, Refusal::default()),
            RequestStep::Compact(brief) => {
                compactions += 1;
                block_on(compactor.compact(&mut messages, brief, &ExtractiveModel)).unwrap();
                compactor.before_request(now)
            }
            RequestStep::GiveUp { before } => break before,
            other => panic!("{other:?}"),
        };
    };
    assert_eq!((compactions, before.to_vec()), (2, unrefused));
    let mut again = before.to_vec();
    compactor.observe(&again);
    assert_eq!(rules(&compactor), [RULE]);
    compacted(&mut compactor, &mut again);
    assert!(format!("{again:?}").contains(RULE));
}

#[test]
fn rules_of_the_host_stay_when_messages_are_read_again() {
    let mut compactor = Compactor::default();
    compactor.add_rule("Never send mails.").unwrap();
    let mut messages = Vec::new();
    round(&mut messages, "Never touch a.rs. Never touch b.rs.");
    round(&mut messages, &long("Go on."));
    compacted(&mut compactor, &mut messages);
    let id = compactor.rules().find("Never touch b.rs.").unwrap().id.clone();
    assert!(compactor.revoke_rule(&id));
    let expected = ["Never send mails.", "Never touch a.rs."];
    let all = |compactor: &Compactor| {
        let mut all = rules(compactor);
        all.sort();
        all
    };
    *messages.last_mut().unwrap() = Message::assistant("Something else.");
    compactor.observe(&messages);
    assert_eq!(all(&compactor), expected);
    let stored = serde_json::to_string(&compactor).unwrap();
    let mut read: Compactor = serde_json::from_str(&stored).unwrap();
    read.add_rule("Never push.").unwrap();
    read.observe(&messages);
    assert_eq!(all(&read), ["Never push.", "Never send mails.", "Never touch a.rs."]);
}

/// A question, a call with its result, and an answer.
fn tool_round(number: usize, text: &str) -> [Message; 4] {
    let id = format!("call_{number}");
    let call = ToolUse::new(id.clone(), "read", serde_json::json!({"path": "src/a.rs"}));
    let result = ToolResult::text(id, long("fn parse() {}"));
    [
        Message::user(long(text)),
        Message::new(Role::Assistant, vec![call.into()]),
        Message::new(Role::User, vec![result.into()]),
        Message::assistant(format!("I read it, number {number}.")),
    ]
}

#[test]
fn rules_survive_if_every_thread_is_a_newly_decoded_body() {
    let codecs: [Dialect; 5] = [
        Dialect::Anthropic,
        Dialect::BedrockConverse,
        Dialect::OpenAiChat,
        Dialect::OpenAiResponses,
        Dialect::Gemini,
    ];
    for codec in codecs {
        let mut stored = serde_json::to_string(&Compactor::default()).unwrap();
        let mut body = codec.encode(&Request::default(), &EncodeOptions::default()).body;
        for number in 0..4 {
            let mut compactor: Compactor = serde_json::from_str(&stored).unwrap();
            let bytes = body.as_str().as_bytes();
            let mut request = codec.decode_slice(bytes, &DecodeOptions::default()).unwrap();
            let typed = match number {
                0 => "Always use tabs. Never touch src/lexer.rs.",
                1 => "Actually, use spaces instead of tabs.",
                _ => "Go on.",
            };
            if number > 0 {
                Arc::make_mut(&mut request.messages).push(Message::assistant("Now that."));
            }
            Arc::make_mut(&mut request.messages).extend(tool_round(number, typed));
            Arc::make_mut(&mut request.messages).push(Message::user("And now?"));
            let done = compactor.compact_request(&mut request, 500, &ExtractiveModel);
            block_on(done).unwrap_or_else(|error| panic!("{codec:?} {number}: {error}"));
            body = codec.encode(&request, &EncodeOptions::default()).body;
            stored = serde_json::to_string(&compactor).unwrap();
            // The same body again brings nothing new.
            let bytes = body.as_str().as_bytes();
            let read = codec.decode_slice(bytes, &DecodeOptions::default()).unwrap();
            compactor.observe(&read.messages);
            let expected = ["Always use tabs.", "Never touch src/lexer.rs."];
            assert_eq!(rules(&compactor), expected, "{codec:?} {number}");
            for rule in expected {
                assert!(body.as_str().contains(rule), "{codec:?} {number}: {rule}");
            }
            // What the user typed later stays, though no model called it a rule.
            let correction = "Actually, use spaces instead of tabs.";
            assert!(body.as_str().contains(correction) || number == 0, "{codec:?} {number}");
        }
    }
}

#[test]
fn an_earlier_summary_in_a_body_does_not_count_as_typed() {
    // The summary of this model keeps all typed text.
    let keeps =
        Summarize { messages: 1, user_messages: 99, user_tokens: 100_000, ..Summarize::default() };
    let mut compactor = Compactor::default().with_strategy(Arc::new(keeps));
    let mut body = Dialect::OpenAiChat.encode(&Request::default(), &EncodeOptions::default()).body;
    for number in 0..3 {
        let bytes = body.as_str().as_bytes();
        let mut request =
            Dialect::OpenAiChat.decode_slice(bytes, &DecodeOptions::default()).unwrap();
        Arc::make_mut(&mut request.messages).extend(tool_round(number, "Go on."));
        Arc::make_mut(&mut request.messages).push(Message::user("And now?"));
        let brief = Brief::default();
        block_on(compactor.compact_request(&mut request, brief, &ExtractiveModel)).unwrap();
        body = Dialect::OpenAiChat.encode(&request, &EncodeOptions::default()).body;
        let tags = body.as_str().matches("conversation-summary>").count();
        assert_eq!(tags, 2, "{number}: {}", body.as_str());
        // The same tags in typed text are not changed.
        let typed = "<conversation-summary>\nI typed this.\n</conversation-summary>";
        let mut copy = request.messages.to_vec();
        copy.push(Message::user(typed));
        let mut other = compactor.clone();
        other.observe(&copy);
        let found = block_on(other.compact(&mut copy, Brief::default(), &ExtractiveModel));
        drop(found);
        assert_eq!(copy.last(), Some(&Message::user(typed)));
    }
}

/// Counts the texts that it sees.
#[derive(Debug, Default)]
struct Counts(AtomicUsize);

impl Redactor for Counts {
    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.0.fetch_add(1, Ordering::Relaxed);
        text.replace("sk-123", "[key]").into()
    }
}

#[test]
fn observing_reads_only_new_messages_and_stores_no_secret() {
    let counts = Arc::new(Counts::default());
    let mut compactor = Compactor::default().with_redactor(counts.clone());
    let mut messages: Vec<Message> = (0..500).map(|n| Message::user(format!("{n}"))).collect();
    compactor.observe(&messages);
    let read = counts.0.swap(0, Ordering::Relaxed);
    assert!(read >= 500);
    compactor.observe(&messages);
    assert_eq!(counts.0.load(Ordering::Relaxed), 0);
    messages.push(Message::user("Never tell anybody that it is sk-123."));
    compactor.observe(&messages);
    assert!((1..=3).contains(&counts.0.load(Ordering::Relaxed)), "{counts:?}");
    compactor.add_rule("Never send sk-123.").unwrap();
    messages.extend([Message::assistant("Yes."), Message::user("Go on.")]);
    block_on(compactor.compact(&mut messages, 400, &ExtractiveModel)).unwrap();
    let stored = serde_json::to_string(&compactor).unwrap();
    assert!(stored.contains("[key]") && !stored.contains("sk-123"));
    assert!(!format!("{:?}", messages[0]).contains("sk-123"));
}

#[test]
fn another_handle_to_the_same_messages_is_no_change() {
    let (mut compactor, mut messages) = (Compactor::default(), Vec::new());
    round(&mut messages, RULE);
    round(&mut messages, &long("Go on."));
    compacted(&mut compactor, &mut messages);
    let shared = Arc::new(messages.clone());
    compactor.observe(&shared);
    let copied: Vec<Message> =
        messages.iter().map(|message| message.with_content(message.content.clone())).collect();
    assert!(copied.iter().zip(&messages).all(|(one, other)| !one.ptr_eq(other)));
    compactor.observe(&copied);
    assert_eq!(rules(&compactor), [RULE]);
    let is_summary = |message: &&Message| {
        message.content.iter().any(|block| matches!(block, ContentBlock::Summary(_)))
    };
    assert_eq!(messages.iter().filter(is_summary).count(), 1);
}
