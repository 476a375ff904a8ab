//! Rendering and chunking: the cases under `testdata/`, and properties of any thread.
//!
//! `testdata/render/`: `--- thread` in the notation of threads, `--- options` with words of
//! [`RenderOptions`] (`result_cap=BYTES` and `input_cap=BYTES` take a value), then `--- expect`
//! with the Markdown.
//!
//! `testdata/chunk/`: `--- budget` with target and tolerance, `--- messages` with a line for each
//! message, `--- expect` with a line for each chunk, and optionally `--- covers` with the messages
//! of each chunk as `FIRST..END`, with `~` on a side on which one is cut. A message or chunk
//! consists of pieces that are joined without the spaces between them: a word or a JSON string,
//! repeated by `*N`. `10 x` before a line stands for ten such lines. So `A*15 "b\n"*2` is fifteen
//! times `A` and then `b` and a line end, twice.

use std::ops::Range;

use proptest::prelude::*;
use threadfold::{
    ContentBlock, Message, Role,
    message::{
        ContextUpdate, Document, Image, Json, MediaSource, Opaque, RedactedThinking,
        ServerToolResult, ServerToolUse, Summary, Thinking, ToolInput, ToolResult, ToolUse,
    },
    render::{
        Chunk, ChunkBudget, RenderOptions, Rendered, chunk, chunk_ranges, render, render_into,
        write_to,
    },
};
use threadfold_testing::{notation, shared::cases};

use crate::support::tries::tries;

#[test]
fn render_passes_its_cases() {
    for case in cases::read("testdata/render").unwrap() {
        let thread = notation::parse(case.section("thread").unwrap()).unwrap();
        let options = options(case.section("options").unwrap_or_default());
        let rendered = render(&thread, &options);
        assert_eq!(rendered.text(), case.section("expect").unwrap(), "{}", case.name);
    }
}

#[test]
fn chunk_passes_its_cases() {
    for case in cases::read("testdata/chunk").unwrap() {
        let rendered: Rendered = lines(case.section("messages").unwrap()).into_iter().collect();
        let budget = case.section("budget").unwrap().trim().split_once(' ').unwrap();
        let budget =
            ChunkBudget { target: budget.0.parse().unwrap(), tolerance: budget.1.parse().unwrap() };
        let chunks = chunk(&rendered, budget);
        let texts: Vec<&str> = chunks.iter().map(|chunk| chunk.text).collect();
        assert_eq!(texts, lines(case.section("expect").unwrap()), "{}", case.name);
        if let Some(expected) = case.section("covers") {
            let covers: Vec<String> = chunks.iter().map(|chunk| covers(chunk)).collect();
            assert_eq!(covers, expected.lines().collect::<Vec<_>>(), "{}", case.name);
        }
    }
}

#[test]
fn a_document_has_its_title_as_heading_and_its_text_on_request() {
    let rendered = |title: Option<&str>, text: &str, asked: bool| {
        let source = MediaSource::Text { media_type: "text/csv".into(), text: text.into() };
        let mut document = Document::new(source);
        document.title = title.map(Into::into);
        let thread = [Message::new(Role::User, vec![document.into()])];
        let options = RenderOptions { document_texts: asked, ..RenderOptions::default() };
        render(&thread, &options).text().to_owned()
    };
    let (plain, titled) = ("# user:\n\n## document: text/csv\n\n", "## document: a.csv (text/csv)");
    assert_eq!(rendered(None, "a,b\n", false), plain);
    assert_eq!(rendered(None, " \n", true), plain);
    assert_eq!(rendered(None, "a,b\n", true), format!("{plain}```\na,b\n```\n\n"));
    assert_eq!(rendered(Some("a.csv"), "a,b", false), format!("# user:\n\n{titled}\n\n"));
    let file = |id: &str| {
        let mut document = Document::new(MediaSource::File { id: id.into() });
        document.title = Some("a.csv".into());
        render(&[Message::new(Role::User, vec![document.into()])], &RenderOptions::default())
    };
    assert_eq!(file("").text(), "# user:\n\n## document: a.csv\n\n");
    assert_eq!(file("f1").text(), "# user:\n\n## document: a.csv (f1)\n\n");
}

fn options(words: &str) -> RenderOptions {
    let mut options = RenderOptions::default();
    for word in words.split_whitespace() {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        match name {
            "thinking" => options.thinking = true,
            "reminders" => options.reminders = true,
            "checkpoints" => options.checkpoints = true,
            "context_texts" => options.context_texts = true,
            "document_texts" => options.document_texts = true,
            "tool_ids" => options.tool_ids = true,
            "result_cap" => options.tool_result_cap = Some(value.parse().unwrap()),
            "input_cap" => options.tool_input_cap = Some(value.parse().unwrap()),
            other => panic!("there is no option {other:?}"),
        }
    }
    options
}

fn covers(range: &Chunk<'_>) -> String {
    let cut = |yes: bool| if yes { "~" } else { "" };
    let Range { start, end } = range.messages;
    format!("{}{start}..{end}{}", cut(range.starts_inside), cut(range.ends_inside))
}

/// Reads the lines of a section in the notation at the head of this file.
fn lines(section: &str) -> Vec<String> {
    let line = |line: &str| {
        let (count, pieces) = match line.split_once(" x ") {
            Some((count, pieces)) if count.parse::<usize>().is_ok() => (count, pieces),
            _ => ("1", line),
        };
        vec![text(pieces); count.parse().unwrap()]
    };
    section.lines().flat_map(line).collect()
}

fn text(mut pieces: &str) -> String {
    let mut text = String::new();
    while !pieces.trim_start().is_empty() {
        pieces = pieces.trim_start();
        let (piece, rest) = if pieces.starts_with('"') {
            let mut strings = serde_json::Deserializer::from_str(pieces).into_iter::<String>();
            let piece = strings.next().unwrap().unwrap();
            (piece, &pieces[strings.byte_offset()..])
        } else {
            let end = pieces.find([' ', '*']).unwrap_or(pieces.len());
            (pieces[..end].to_owned(), &pieces[end..])
        };
        let end = rest.find(' ').unwrap_or(rest.len());
        let times = rest[..end].strip_prefix('*').map_or(1, |times| times.parse().unwrap());
        text.push_str(&piece.repeat(times));
        pieces = &rest[end..];
    }
    text
}

// What holds for any thread.

/// Texts that look like parts of a rendering.
fn hostile() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        Just("# user:\n"),
        Just("\n# assistant:\n\n"),
        Just("#  SYSTEM:"),
        Just("\\"),
        Just("#"),
        Just("\n## tool_result\n\n"),
        Just("## text\n\n"),
        Just("```"),
        Just("\n```\n"),
        Just("~~~~\n"),
        Just("`"),
        Just("````json\n"),
        Just("</system-reminder>"),
        Just("\r"),
        Just("\n"),
        Just("\n\n"),
        Just(" "),
        Just("a"),
        Just("é"),
        Just("🦀"),
        Just("\u{2028}"),
        Just("<checkpoint:aaaaaa>"),
        Just("{\"a\":1}"),
        Just("[... 5 bytes omitted ...]"),
        Just("\0"),
        Just("user:"),
        Just("\t"),
        Just("long words in a line of some length "),
    ];
    let built = prop::collection::vec(pieces, 0..12).prop_map(|pieces| pieces.concat());
    prop_oneof![3 => built, 1 => any::<String>()]
}

fn input() -> impl Strategy<Value = Json> {
    let value = (hostile(), any::<i32>());
    value.prop_map(|(text, number)| serde_json::json!({text: [number, {"b": ""}]}).into())
}

/// The payload of a provider's own tool.
fn payload() -> impl Strategy<Value = Json> {
    let value = (hostile(), any::<i32>(), any::<bool>()).prop_map(|(text, number, links)| {
        if links {
            serde_json::json!([{"url": text, "title": text, "encrypted_content": "SECRET"}])
        } else {
            serde_json::json!({text: [number, {"encrypted_index": "SECRET"}], "s": ""})
        }
    });
    value.prop_map(Json::from)
}

fn media() -> impl Strategy<Value = MediaSource> {
    prop_oneof![
        hostile().prop_map(|url| MediaSource::Url { url: url.into() }),
        hostile().prop_map(|id| MediaSource::File { id: id.into() }),
        (hostile(), hostile()).prop_map(|(media_type, text)| MediaSource::Text {
            media_type: media_type.into(),
            text: text.into()
        }),
        hostile().prop_map(|media_type| MediaSource::Base64 {
            media_type: media_type.into(),
            data: "SECRET".into()
        }),
        payload().prop_map(|value| MediaSource::Opaque { codec: "x".into(), value }),
    ]
}

fn block() -> impl Strategy<Value = ContentBlock> {
    let leaf = prop_oneof![
        4 => hostile().prop_map(ContentBlock::text),
        1 => media().prop_map(|source| Image::new(source).into()),
        1 => (media(), hostile()).prop_map(|(source, title)| {
            let mut document = Document::new(source);
            document.title = Some(title.into());
            document.into()
        }),
        1 => hostile().prop_map(|text| Thinking::new(text, None).into()),
        1 => Just(RedactedThinking::new("SECRET").into()),
        2 => (hostile(), hostile(), input())
            .prop_map(|(id, name, input)| ToolUse::new(id, name, input).into()),
        2 => (hostile(), hostile()).prop_map(|(name, text)| {
            let mut call = ToolUse::new("t1", name, Json::default());
            call.input = ToolInput::from_text(text);
            call.into()
        }),
        1 => (hostile(), input()).prop_map(|(name, json)| ServerToolUse::new("s", name, json).into()),
        1 => (hostile(), payload())
            .prop_map(|(kind, json)| ServerToolResult::new("s", kind, json).into()),
        1 => hostile().prop_map(ContentBlock::reminder),
        1 => (hostile(), hostile())
            .prop_map(|(path, text)| ContextUpdate::new(vec![path.into()], text).into()),
        1 => Just(ContentBlock::checkpoint("aaaaaa".parse().unwrap())),
        1 => hostile().prop_map(|text| Summary::new(text).into()),
        1 => (hostile(), payload()).prop_map(|(codec, json)| Opaque::new(codec, json).into()),
    ];
    leaf.prop_recursive(2, 8, 4, |inner| {
        let content = prop::collection::vec(inner, 0..4);
        (hostile(), content, any::<bool>()).prop_map(|(id, content, is_error)| {
            let mut result = ToolResult::new(id, content);
            result.is_error = is_error;
            result.into()
        })
    })
}

fn message() -> impl Strategy<Value = Message> {
    let role = prop_oneof![Just(Role::System), Just(Role::User), Just(Role::Assistant)];
    (role, prop::collection::vec(block(), 0..5))
        .prop_map(|(role, blocks)| Message::new(role, blocks))
}

fn thread() -> impl Strategy<Value = Vec<Message>> {
    prop::collection::vec(message(), 0..8)
}

fn any_options() -> impl Strategy<Value = RenderOptions> {
    let cap = || prop::option::of(0_usize..60);
    (any::<[bool; 6]>(), cap(), cap()).prop_map(|(flags, tool_result_cap, tool_input_cap)| {
        let [thinking, reminders, checkpoints, context_texts, document_texts, tool_ids] = flags;
        RenderOptions {
            thinking,
            reminders,
            checkpoints,
            context_texts,
            document_texts,
            tool_ids,
            tool_result_cap,
            tool_input_cap,
        }
    })
}

fn budget() -> impl Strategy<Value = ChunkBudget> {
    (0_usize..120, 0_usize..40).prop_map(|(target, tolerance)| ChunkBudget { target, tolerance })
}

/// The documented way to read a rendering: these lines are marks, whatever surrounds them.
fn is_message_mark(line: &str) -> bool {
    matches!(line, "# system:" | "# user:" | "# assistant:")
}

fn is_block_mark(line: &str) -> bool {
    let kind = line.strip_prefix("## ").and_then(|rest| rest.split([':', ' ']).next());
    kind.is_some_and(|kind| KINDS.contains(&kind))
}

const KINDS: [&str; 14] = [
    "text",
    "image",
    "document",
    "thinking",
    "redacted_thinking",
    "tool_use",
    "tool_result",
    "server_tool_use",
    "server_tool_result",
    "system_reminder",
    "context_update",
    "checkpoint",
    "summary",
    "opaque",
];

/// Everything that a reader may treat as the end of a line.
fn any_lines(text: &str) -> impl Iterator<Item = &str> {
    text.split(['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'])
}

/// The offsets of the message marks.
fn message_marks(text: &str) -> Vec<usize> {
    let lines = text.split_inclusive('\n').scan(0, |at, line| {
        let start = *at;
        *at += line.len();
        Some((start, line))
    });
    let marks = lines.filter(|(_, line)| is_message_mark(line.trim_end_matches('\n')));
    marks.map(|(start, _)| start).collect()
}

/// The kinds of blocks under a heading, as the options show them.
fn headed(message: &Message, options: &RenderOptions) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    let mut under_heading = false;
    for block in &message.content {
        let shown = match block {
            ContentBlock::Text(text) if text.text.trim().is_empty() => continue,
            ContentBlock::Text(_) => std::mem::take(&mut under_heading),
            ContentBlock::Thinking(thinking) => {
                options.thinking && !thinking.text.trim().is_empty()
            }
            ContentBlock::RedactedThinking(_) => options.thinking,
            ContentBlock::SystemReminder(_) => options.reminders,
            ContentBlock::Checkpoint(_) => options.checkpoints,
            _ => true,
        };
        if shown {
            kinds.push(block.kind());
            under_heading = block.kind() != "text";
        }
    }
    kinds
}

/// Counts the fences under the headings of tools. Panics if one is not closed.
fn fences(rendered: &str) -> usize {
    let mut count = 0;
    let mut lines = rendered.lines();
    while let Some(line) = lines.next() {
        // A cap may leave only the beginning of such a heading, which is not one.
        let is_tool = ["## tool_use", "## tool_result"].iter().any(|mark| line.starts_with(mark));
        if !is_tool || line.ends_with("omitted)") || line.ends_with("empty)") {
            continue;
        }
        assert_eq!(lines.next(), Some(""));
        let opening = lines.next().unwrap();
        let fence = opening.trim_end_matches("json");
        assert!(fence.len() >= 3 && fence.bytes().all(|byte| byte == b'`'), "{opening:?}");
        assert!(lines.any(|line| line == fence), "{opening:?} is never closed");
        assert_eq!(lines.next(), Some(""), "{opening:?} was closed from inside");
        count += 1;
    }
    count
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..tries(96) })]

    #[test]
    fn nothing_in_a_thread_can_forge_a_heading(thread in thread(), options in any_options()) {
        let rendered = render(&thread, &options);
        let starts: Vec<usize> = rendered.message_ranges().map(|range| range.start).collect();
        prop_assert_eq!(message_marks(&rendered), starts);
        prop_assert_eq!(any_lines(&rendered).filter(|line| is_message_mark(line)).count(), thread.len());
        for (index, message) in thread.iter().enumerate() {
            let lines = any_lines(rendered.message(index).unwrap());
            let kinds: Vec<&str> = lines
                .filter(|line| is_block_mark(line))
                .map(|line| line[3..].split([':', ' ']).next().unwrap())
                .collect();
            prop_assert_eq!(kinds, headed(message, &options));
        }
    }

    #[test]
    fn nothing_in_a_thread_can_close_a_fence(thread in thread(), options in any_options()) {
        fences(&render(&thread, &options));
    }

    #[test]
    fn encrypted_content_of_a_provider_is_never_rendered(thread in thread(), options in any_options()) {
        prop_assert!(!render(&thread, &options).contains("SECRET"));
    }

    #[test]
    fn every_message_is_rendered_by_itself(thread in thread(), options in any_options()) {
        let rendered = render(&thread, &options);
        let alone: Rendered =
            thread.iter().map(|message| render(std::slice::from_ref(message), &options).into_text()).collect();
        prop_assert_eq!(&rendered, &alone);
        let mut written = String::new();
        write_to(&thread, &options, &mut written).unwrap();
        prop_assert_eq!(rendered.text(), written);
        let mut again = render(&[Message::user("something else")], &RenderOptions::default());
        render_into(&thread, &options, &mut again);
        prop_assert_eq!(again, rendered);
    }

    #[test]
    fn chunks_joined_are_the_rendering(thread in thread(), budget in budget()) {
        let rendered = render(&thread, &RenderOptions::default());
        let joined: String = chunk(&rendered, budget).iter().map(|chunk| chunk.text).collect();
        prop_assert_eq!(joined, rendered.text());
    }

    #[test]
    fn chunks_stay_within_their_budget(texts in prop::collection::vec(hostile(), 0..12), budget in budget()) {
        let rendered: Rendered = texts.iter().collect();
        let chunks = chunk(&rendered, budget);
        for (index, chunk) in chunks.iter().enumerate() {
            prop_assert!(!chunk.text.is_empty());
            let one_character = chunk.text.chars().nth(1).is_none();
            prop_assert!(chunk.text.len() <= budget.max() || one_character, "{:?}", chunk);
            // A message is cut only if it does not fit in any chunk.
            if chunk.ends_inside {
                let cut = rendered.message_range(chunk.messages.end - 1).unwrap();
                prop_assert!(cut.len() > budget.max());
                // The piece reaches the target, except for a character across the target.
                prop_assert!(chunk.text.len() + 3 >= budget.target);
            } else if let Some(next) = chunks.get(index + 1) {
                // A chunk is closed where the next message does not fit.
                let message = rendered.message_range(next.messages.start).unwrap();
                prop_assert!(chunk.text.len() + message.len() > budget.max() || message.is_empty());
            }
        }
    }

    #[test]
    fn chunks_state_exactly_which_messages_they_cover(texts in prop::collection::vec(hostile(), 0..12), budget in budget()) {
        let rendered: Rendered = texts.iter().collect();
        let ranges = chunk(&rendered, budget);
        let bytes: Vec<_> = ranges.iter().map(|chunk| chunk.bytes.clone()).collect();
        prop_assert_eq!(bytes, chunk_ranges(&rendered, budget));
        let mut at = 0;
        for (index, range) in ranges.iter().enumerate() {
            prop_assert_eq!((range.index, range.total), (index, ranges.len()));
            prop_assert_eq!(range.is_last(), index + 1 == ranges.len());
            prop_assert_eq!(range.bytes.start, at);
            at = range.bytes.end;
            prop_assert!(rendered.is_char_boundary(at));
            let whole = range.messages.start + usize::from(range.starts_inside)
                ..range.messages.end.saturating_sub(usize::from(range.ends_inside));
            for (message, bytes) in rendered.message_ranges().enumerate().filter(|(_, bytes)| !bytes.is_empty()) {
                let touches = bytes.start < range.bytes.end && range.bytes.start < bytes.end;
                let inside = range.bytes.start <= bytes.start && bytes.end <= range.bytes.end;
                prop_assert_eq!(range.messages.contains(&message), touches);
                prop_assert_eq!(whole.contains(&message), inside);
            }
        }
        prop_assert_eq!(at, rendered.len());
        let mut next = 0;
        for range in &ranges {
            prop_assert_eq!(range.messages.start, next - usize::from(range.starts_inside));
            next = range.messages.end;
        }
        prop_assert!(ranges.is_empty() || next == rendered.message_ranges().len());
    }

    #[test]
    fn no_chunk_shows_a_heading_that_is_not_one(thread in thread(), target in 1_usize..120) {
        let rendered = render(&thread, &RenderOptions::default());
        let budget = ChunkBudget { target, tolerance: 20 };
        for chunk in chunk(&rendered, budget) {
            let marks: Vec<usize> =
                message_marks(chunk.text).into_iter().map(|at| at + chunk.bytes.start).collect();
            let starts: Vec<usize> = rendered
                .message_ranges()
                .map(|range| range.start)
                .filter(|start| chunk.bytes.contains(start))
                .collect();
            prop_assert_eq!(marks, starts);
        }
    }
}
