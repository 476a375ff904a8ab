//! Compaction of a host's own messages: the same result as for ours, and the same values stay.

use std::sync::Arc;

use futures::executor::block_on;
use proptest::test_runner::TestRunner;
use threadfold::{
    Compactor, ContentBlock, Message, Role, Usage,
    compact::TrimToolResults,
    drive::Models,
    foreign::{HostMessage, NewMessage, NewPart, Part, Piece, ResultPart, shadow, shadows},
    message::{
        Document, Image, MediaSource, Redactor, Thinking, ToolInput, ToolResult, ToolUse, markup,
    },
    strategy::{Brief, ClearResults, CompactionStrategy, Digest, KeepRecent, Ladder},
    testing::ExtractiveModel,
    tokens::{ByteEstimate, TokenCounter},
};
use threadfold_testing::generate;

/// The message of a host, with a number that no plan knows of.
#[derive(Debug, PartialEq)]
struct Native {
    role: Role,
    is_typed: bool,
    parts: Vec<NativePart>,
    number: usize,
}

#[derive(Clone, Debug, PartialEq)]
enum NativePart {
    Text(String),
    Thought(String),
    Picture(Option<(u64, u64)>),
    File { title: String, text: Option<String> },
    Call { id: String, name: String, input: String },
    Output { id: String, content: Vec<NativePart>, is_error: bool },
    Blob(usize),
}

impl HostMessage for Native {
    fn role(&self) -> Role {
        self.role
    }

    fn parts(&self) -> Vec<Part<'_>> {
        self.parts.iter().map(NativePart::part).collect()
    }

    fn is_typed(&self) -> bool {
        self.is_typed
    }
}

impl NativePart {
    fn part(&self) -> Part<'_> {
        match self {
            Self::Text(text) => Part::text(text),
            Self::Thought(text) => Part::Reasoning(text.into()),
            Self::Picture(pixels) => Part::Image { pixels: *pixels },
            Self::File { title, text } => {
                Part::Document { title: title.into(), text: text.as_ref().map(Into::into) }
            }
            Self::Call { id, name, input } => Part::call(id, name, input),
            Self::Output { id, content, is_error } => {
                let content = content.iter().map(Self::part).collect();
                Part::Result { id: id.into(), content, is_error: *is_error }
            }
            Self::Blob(bytes) => Part::Native { bytes: *bytes },
        }
    }

    /// Returns the part for a block of a generated message.
    fn of(block: &ContentBlock) -> Option<Self> {
        Some(match block {
            ContentBlock::Text(block) => Self::Text(block.text.to_string()),
            ContentBlock::Thinking(thinking) => Self::Thought(thinking.text.to_string()),
            ContentBlock::Image(_) => Self::Picture(None),
            ContentBlock::Document(document) => {
                let title = document.title.as_deref().unwrap_or_default().to_owned();
                let text = match &document.source {
                    MediaSource::Text { text, .. } => Some(text.to_string()),
                    _ => None,
                };
                Self::File { title, text }
            }
            ContentBlock::ToolUse(call) => Self::Call {
                id: call.id.to_string(),
                name: call.name.to_string(),
                input: call.input.as_str().to_owned(),
            },
            ContentBlock::ToolResult(result) => Self::Output {
                id: result.tool_use_id.to_string(),
                content: result.content.iter().filter_map(Self::of).collect(),
                is_error: result.is_error,
            },
            ContentBlock::Opaque(opaque) => Self::Blob(opaque.value.as_str().len()),
            _ => return None,
        })
    }
}

fn natives(thread: &[Message]) -> Vec<Arc<Native>> {
    let native = |(number, message): (usize, &Message)| {
        let mut parts: Vec<_> = message.content.iter().filter_map(NativePart::of).collect();
        if parts.is_empty() {
            parts.push(NativePart::Text("-".to_owned()));
        }
        let is_typed = message.role == Role::User && !message.untyped;
        Arc::new(Native { role: message.role, is_typed, parts, number })
    };
    thread.iter().enumerate().map(native).collect()
}

/// Makes the messages of a plan that are new.
fn made(new: &NewMessage, old: &[Arc<Native>]) -> Arc<Native> {
    let part = |part: &NewPart| match part {
        NewPart::Kept { message, part, .. } => old[*message].parts[*part].clone(),
        NewPart::Text(text) => NativePart::Text(text.to_string()),
        NewPart::Call(call) => NativePart::Call {
            id: call.id.to_string(),
            name: call.name.to_string(),
            input: call.input.as_str().to_owned(),
        },
        NewPart::Result(result) => {
            let NativePart::Output { content: whole, .. } = &old[result.message].parts[result.part]
            else {
                panic!("{result:?} is of no result")
            };
            let content = result.content.iter().map(|part| match part {
                ResultPart::Kept { part, .. } => whole[*part].clone(),
                ResultPart::Text(text) => NativePart::Text(text.to_string()),
            });
            NativePart::Output {
                id: result.id.to_string(),
                content: content.collect(),
                is_error: result.is_error,
            }
        }
    };
    let parts = new.parts.iter().map(part).collect();
    Arc::new(Native { role: new.role, is_typed: new.role == Role::User, parts, number: usize::MAX })
}

/// The blocks of a message as a host sends them: those that are texts in tags as texts.
fn sent(message: &Message) -> Vec<ContentBlock> {
    let blocks = message.content.iter().map(|block| match block {
        ContentBlock::Summary(summary) => {
            ContentBlock::text(markup::summary(message.role, summary))
        }
        ContentBlock::SystemReminder(block) => ContentBlock::text(markup::reminder(&block.text)),
        ContentBlock::Checkpoint(mark) => ContentBlock::text(markup::checkpoint(mark.id)),
        block => block.clone(),
    });
    blocks.collect()
}

fn strategies() -> Vec<Arc<dyn CompactionStrategy>> {
    vec![
        Arc::new(Ladder::default()),
        Arc::new(Digest::default()),
        Arc::new(KeepRecent { messages: 5, ..KeepRecent::default() }),
        Arc::new(TrimToolResults { min_bytes: 16, ..TrimToolResults::default() }),
        Arc::new(ClearResults { keep: 1, ..ClearResults::default() }),
    ]
}

/// Compacts both forms of a thread, and checks that all is the same.
fn check(
    host: &mut Vec<Arc<Native>>,
    own: &mut Vec<Message>,
    on_host: &mut Compactor,
    on_own: &mut Compactor,
) {
    on_own.observe(own);
    let target = (on_own.context_tokens() / 2).max(20);
    let (host_before, own_before) = (host.clone(), own.clone());
    let planned = block_on(on_host.plan_host(host, target, &ExtractiveModel));
    let done = block_on(on_own.compact(own, target, &ExtractiveModel));
    let planned = match (planned, done) {
        (Ok(planned), Ok(done)) => {
            assert_eq!(planned.record.plan, done.plan);
            planned
        }
        (planned, done) => {
            let errors = (planned.map(drop).unwrap_err(), done.map(drop).unwrap_err());
            assert_eq!(errors.0.to_string(), errors.1.to_string());
            return;
        }
    };
    let applied = planned.plan.apply(host, made).unwrap();
    assert_eq!(host.len(), own.len());
    for (theirs, ours) in host.iter().zip(&*own) {
        assert_eq!((theirs.role, &shadow(theirs).content), (ours.role, &sent(ours)));
    }
    let mut at = 0;
    for piece in planned.plan.pieces() {
        match piece {
            Piece::Keep(range) => {
                for index in range.clone() {
                    assert!(Arc::ptr_eq(&host[at], &host_before[index]), "{index}");
                    assert_eq!(own[at].content, own_before[index].content);
                    at += 1;
                }
            }
            Piece::New(_) => at += 1,
        }
    }
    let mut undone = host.clone();
    applied.undo(&mut undone).unwrap();
    let pairs = undone.iter().zip(&host_before);
    assert!(
        undone.len() == host_before.len() && { pairs }.all(|(one, other)| Arc::ptr_eq(one, other))
    );
    on_host.observe_host(host);
    on_own.observe(own);
    assert_eq!(on_host.context_tokens(), on_own.context_tokens());
    assert_eq!(on_host.rules(), on_own.rules());
}

#[test]
fn a_plan_on_foreign_messages_is_the_plan_on_ours() {
    let threads = || generate::legal_thread(2..24);
    TestRunner::default()
        .run(&(threads(), threads(), 0_usize..5), |(first, second, strategy)| {
            let strategy = strategies().swap_remove(strategy);
            let compactor = || Compactor::default().with_strategy(Arc::clone(&strategy));
            let (mut on_host, mut on_own) = (compactor(), compactor());
            let (mut host, mut own) = (Vec::new(), Vec::new());
            for thread in [first, second] {
                let natives = natives(&thread);
                own.extend(shadows(&natives));
                host.extend(natives);
                check(&mut host, &mut own, &mut on_host, &mut on_own);
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn large_threads_are_compacted_the_same_way_again_and_again() {
    for (seed, strategy) in (0..).zip(strategies()) {
        let compactor = || Compactor::default().with_strategy(Arc::clone(&strategy));
        let (mut on_host, mut on_own) = (compactor(), compactor());
        let (mut host, mut own) = (Vec::new(), Vec::new());
        for thread in generate::legal_thread_from(seed, 120).chunks(30) {
            let natives = natives(thread);
            own.extend(shadows(&natives));
            host.extend(natives);
            check(&mut host, &mut own, &mut on_host, &mut on_own);
        }
    }
}

#[test]
fn a_shadow_counts_like_a_message_of_ours() {
    let url = || MediaSource::Url { url: "".into() };
    let gif =
        MediaSource::Base64 { media_type: "image/gif".into(), data: "R0lGODlh6APoAw==".into() };
    let result = vec![ContentBlock::text("fn main() {}"), Image::new(url()).into()];
    let ours = Message::new(
        Role::User,
        vec![
            ContentBlock::text("Look."),
            Thinking::new("Hm, well.", None).into(),
            Image::new(gif).into(),
            Document { title: Some("a.pdf".into()), ..Document::new(url()) }.into(),
            ToolUse::new("c1", "read", ToolInput::from_text("{}")).into(),
            ToolResult::new("c1", result).into(),
        ],
    );
    let output = vec![NativePart::Text("fn main() {}".into()), NativePart::Picture(None)];
    let theirs = Native {
        role: Role::User,
        is_typed: true,
        parts: vec![
            NativePart::Text("Look.".into()),
            NativePart::Thought("Hm, well.".into()),
            NativePart::Picture(Some((1_000, 1_000))),
            NativePart::File { title: "a.pdf".into(), text: None },
            NativePart::Call { id: "c1".into(), name: "read".into(), input: "{}".into() },
            NativePart::Output { id: "c1".into(), content: output, is_error: false },
        ],
        number: 0,
    };
    let counter = ByteEstimate::TRIGGER;
    assert_eq!(counter.message(&shadow(&theirs)), counter.message(&ours));
}

#[test]
fn a_shared_text_is_not_copied() {
    struct Shared(Arc<str>);
    impl HostMessage for Shared {
        fn role(&self) -> Role {
            Role::User
        }
        fn parts(&self) -> Vec<Part<'_>> {
            vec![Part::text(&self.0)]
        }
    }
    let message = Shared("fn main() {}".into());
    let shadow = shadow(&message);
    assert_eq!(shadow.content[0].as_text().unwrap().as_ptr(), message.0.as_ptr());
}

#[test]
fn text_that_no_person_typed_is_not_kept_as_the_users_words() {
    let native = |is_typed: bool| Native {
        role: Role::User,
        is_typed,
        parts: vec![NativePart::Text("Always push to main.".into())],
        number: 0,
    };
    assert!(shadow(&native(true)).is_typed() && !shadow(&native(false)).is_typed());
}

#[test]
fn a_changed_or_shorter_thread_is_read_again() {
    let said = |text: &str| (Role::User, text.to_owned());
    let mut compactor = Compactor::default();
    compactor.observe_host(&[said("one"), said("two")]);
    let other = [said("one"), said("2")];
    compactor.observe_host(&other);
    let mut fresh = Compactor::default();
    fresh.observe_host(&other);
    assert_eq!(compactor.context_tokens(), fresh.context_tokens());
    compactor.observe_host(&other[..1]);
    assert!(compactor.context_tokens() < fresh.context_tokens());
}

#[test]
fn redacted_words_are_in_no_plan() {
    #[derive(Debug)]
    struct Names;
    impl Redactor for Names {
        fn redact<'a>(&self, text: &'a str) -> std::borrow::Cow<'a, str> {
            text.replace("Ada", "[name]").into()
        }
    }
    let said = |text: String| (Role::Assistant, text);
    let thread = [said("Ada reads. ".repeat(200)), said("Well.".to_owned())];
    let mut compactor = Compactor::default().with_redactor(Arc::new(Names));
    let planned = block_on(compactor.plan_host(&thread, 200, &ExtractiveModel)).unwrap();
    assert!(!format!("{:?}", planned.plan).contains("Ada"));
}

#[test]
fn a_failed_plan_and_a_plan_for_another_thread_change_nothing() {
    let mut thread = vec![(Role::User, "hi".to_owned())];
    let mut compactor = Compactor::default();
    let brief = Brief { target: Some(1_000), ..Brief::default() };
    assert!(block_on(compactor.plan_host(&thread, brief, Models::default())).is_err());
    let long = vec![(Role::Assistant, "I read. ".repeat(300)), (Role::User, "And?".to_owned())];
    let planned = block_on(compactor.plan_host(&long, 200, Models::default())).unwrap();
    let error = planned.plan.apply(&mut thread, |new, _| (new.role, new.text())).unwrap_err();
    assert_eq!(error.to_string(), "the plan was made for 2 messages; the thread has 1");
    assert_eq!(thread.len(), 1);
}

#[test]
fn a_report_of_usage_scales_what_follows() {
    let mut compactor = Compactor::default();
    compactor.observe_host(&[(Role::User, "word ".repeat(600))]);
    assert!(!compactor.learn(Usage::new(0, 0)));
    let before = compactor.context_tokens();
    assert!(compactor.learn(Usage::new(before * 2, 0)));
    assert!(compactor.context_tokens() > before);
}
