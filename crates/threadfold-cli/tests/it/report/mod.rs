//! The page of `threadfold report`: any text of a log is shown literally, the page stays small and
//! complete, and it agrees with the log.

use std::sync::LazyLock;

use serde_json::json;
use threadfold::{
    EventLog, Message, Plan, TokenCounter,
    compact::{CompactReport, Insert, Splice},
    log::{self, CompactionFailure, CompactionRecord, Event, Rung},
    message::{CompactionReason, Role, Summary, Timestamp, Usage},
    retention::{Facts, RetentionPolicy},
    tokens::ByteEstimate,
};

use threadfold_cli::report::{
    MAX_BYTES, page,
    story::{Outcome, Story},
};

mod played;

static PLAYED: LazyLock<EventLog> = LazyLock::new(|| played::played(500, 16_000).unwrap());

/// Texts that would break the page if they were not escaped.
const HOSTILE: [&str; 10] = [
    "</pre></article></main><script>alert(1)</script>",
    "</style><style>*{display:none}</style>",
    "<svg onload=\"alert(1)\"><a href='javascript:1'>x</a></svg>",
    "<!-- <![CDATA[ ]]> -->",
    "\" onclick=\"alert(1)\" '",
    "&lt;script&gt; &#60;b&#62; &amp",
    "\u{0}\u{1}\u{8}\u{b}\u{c}\r\u{1b}[31m\u{7f}\u{85}\u{9b}",
    "\u{202e}txet\u{202c} \u{2066}x\u{2069} \u{200f}\u{61c}\u{feff}\u{200b}\u{2028}",
    "\u{fffe}\u{ffff}\u{e0041} 漢字 🦀 سلام",
    "<img src=\"http://example.org/x.png\">",
];

/// A log with hostile text everywhere, a compaction, an undone one and a failed one.
fn hostile() -> EventLog {
    let mut log = EventLog::new("main".parse().unwrap());
    let mut append = |event| {
        log.append(Timestamp(1), event).unwrap();
        log.len()
    };
    for text in HOSTILE {
        append(Event::MessageAppended(Message::user(format!("{text} Never do {text}."))));
        append(Event::MessageAppended(Message::assistant(format!("`{text}` in {text}"))));
    }
    let all = HOSTILE.concat();
    for number in 0..2 {
        let plan = plan(&log, &all);
        let mut after = log.replay();
        let before = ByteEstimate::TRIGGER.messages(&after);
        let _ = plan.apply(&mut after).unwrap();
        let reason = CompactionReason::Manual { instructions: Some(all.as_str().into()) };
        let id = log.next_compaction();
        let mut record = CompactionRecord::new(id, reason.clone(), all.as_str(), plan);
        record.report.before.tokens = before;
        record.rungs = vec![Rung::new(all.as_str())];
        record.rungs[0].failure = Some(all.as_str().into());
        log.append(Timestamp(2), Event::Compacted(Box::new(record))).unwrap();
        if number == 0 {
            log.append(Timestamp(2), Event::CompactionUndone { id }).unwrap();
        }
    }
    let id = log.next_compaction();
    let reason = CompactionReason::Threshold;
    let failure = CompactionFailure::new(id, reason, all.as_str(), all.as_str());
    log.append(Timestamp(3), Event::CompactionFailed(Box::new(failure))).unwrap();
    log
}

/// A plan that replaces all but the last two messages by a summary.
fn plan(log: &EventLog, text: &str) -> Plan {
    let len = log.replay().len();
    let message = Message::summary(Role::User, Summary::new(text));
    let splice = Splice { at: 0..len - 2, insert: vec![Insert::Message { message }] };
    Plan::from_splices(len, vec![splice])
}

/// A start tag with its attributes, an end tag, or a text.
#[derive(Debug)]
enum Piece<'a> {
    Start { name: &'a str, attributes: Vec<(&'a str, &'a str)>, closed: bool },
    End(&'a str),
    Text(&'a str),
}

/// The pieces of a page that closes every tag and quotes every attribute. Anything else fails the
/// test.
fn pieces(page: &str) -> Vec<Piece<'_>> {
    let mut rest = page.strip_prefix("<!DOCTYPE html>\n").unwrap();
    let mut pieces = Vec::new();
    while let Some(at) = rest.find('<') {
        pieces.push(Piece::Text(&rest[..at]));
        let end = at + rest[at..].find('>').unwrap();
        let inside = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = inside.strip_prefix('/') {
            assert!(is_name(name), "</{name}>");
            pieces.push(Piece::End(name));
            continue;
        }
        let closed = inside.ends_with('/');
        let inside = inside.strip_suffix('/').unwrap_or(inside);
        let (name, mut given) = inside.split_once(' ').unwrap_or((inside, ""));
        assert!(is_name(name), "<{name}>");
        let mut attributes = Vec::new();
        while !given.trim().is_empty() {
            let (key, behind) = given.split_once("=\"").unwrap();
            let (value, behind) = behind.split_once('"').unwrap();
            assert!(key.trim().chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "{key}");
            attributes.push((key.trim(), value));
            given = behind;
        }
        pieces.push(Piece::Start { name, attributes, closed });
        if name == "style" {
            let (style, behind) = rest.split_once("</style>").unwrap();
            assert!(!style.contains('<') && !style.contains("url(") && !style.contains("@import"));
            rest = behind;
            pieces.push(Piece::End("style"));
        }
    }
    pieces.push(Piece::Text(rest));
    pieces
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric())
}

/// Checks that tags are balanced, ids are unique, links lead to them, and that the page runs and
/// fetches nothing.
fn assert_whole(page: &str) {
    let (mut open, mut ids, mut links) = (Vec::new(), Vec::new(), Vec::new());
    for piece in pieces(page) {
        match piece {
            Piece::Text(text) => assert!(!text.contains('>'), "{text}"),
            Piece::End(name) => assert_eq!(open.pop(), Some(name), "{open:?}"),
            Piece::Start { name, attributes, closed } => {
                let barred =
                    ["script", "iframe", "object", "embed", "link", "img", "base", "form", "use"];
                assert!(!barred.contains(&name), "{name}");
                for (key, value) in attributes {
                    assert!(!key.starts_with("on") && key != "src" && key != "style", "{key}");
                    assert!(!value.contains("http") && !value.contains("javascript"), "{value}");
                    match key {
                        "id" => ids.push(value),
                        "href" => links.push(value.strip_prefix('#').unwrap()),
                        _ => {}
                    }
                }
                if !closed {
                    open.push(name);
                }
            }
        }
    }
    assert!(open.is_empty(), "{open:?}");
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
    assert!(links.iter().all(|link| ids.binary_search(link).is_ok()), "{links:?}");
    assert!(!page.contains("<script"));
    let hidden = |c: char| {
        (c.is_control() && c != '\n' && c != '\t') || "\u{202e}\u{2066}\u{200f}\u{feff}".contains(c)
    };
    assert_eq!(page.chars().find(|c| hidden(*c)), None);
}

#[test]
fn a_card_shows_what_was_expected_what_the_provider_reported_and_what_is_opaque() {
    let mut log = EventLog::new("main".parse().unwrap());
    let answer = |input: u64| {
        let mut answer = Message::assistant("Yes. ".repeat(100));
        answer.make_mut().usage = Some(Usage { cache_read: input / 2, ..Usage::new(input, 100) });
        Event::MessageAppended(answer)
    };
    let asked = || Event::MessageAppended(Message::user("Well?"));
    for event in [asked(), answer(5_000), asked(), asked()] {
        log.append(Timestamp(1), event).unwrap();
    }
    let plan = plan(&log, "They talked.");
    let id = log.next_compaction();
    let reason = CompactionReason::Threshold;
    let mut record = CompactionRecord::new(id, reason, "native", plan);
    (record.report.before.tokens, record.report.after.tokens) = (4_000, 1_000);
    record.report.notes = vec!["Its block cannot be looked into.".into()];
    let cost = json!({"tokens_rebilled": 1_234, "model_calls": 20_000, "rebill": 5_000,
        "saved_per_request": 900, "pays_after": 29});
    record.report.cost = Some(Box::new(serde_json::from_value(cost).unwrap()));
    log.append(Timestamp(2), Event::Compacted(Box::new(record))).unwrap();
    log.append(Timestamp(3), answer(2_000)).unwrap();
    let page = page(&log, None);
    for words in [
        "to bill 1,234 tokens again and to cost 0.0250 once",
        "save 0.0009 with every request after that; it has paid for itself after 29 requests.",
        "For the 1 answer until the next one the provider reported prompts of 2,000 tokens",
        "1,000 read from its cache and 0 written to it",
        "they would have had 5,000.",
        "Its block cannot be looked into.",
    ] {
        assert!(page.contains(words), "{words} is not in {page}");
    }
}

#[test]
fn all_content_of_a_log_is_literal_text_in_its_page() {
    let page = page(&hostile(), Some(1_000));
    assert_whole(&page);
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(page.contains("&amp;lt;script&amp;gt; &amp;#60;b&amp;#62; &amp;amp"));
    assert!(page.contains("[U+202E]txet[U+202C]") && page.contains("␛[31m"));
}

#[test]
fn a_session_of_500_turns_makes_a_page_that_is_whole_and_below_a_megabyte() {
    let with_a_window = page(&PLAYED, Some(16_000));
    assert!(with_a_window.len() < MAX_BYTES, "{} bytes", with_a_window.len());
    assert_whole(&with_a_window);
    let without_a_window = page(&PLAYED, None);
    assert_whole(&without_a_window);
}

#[test]
fn a_page_agrees_with_its_log() {
    let story = Story::of(&PLAYED, Some(16_000));
    assert_eq!((story.turns, story.spent), (500, log::total_usage(PLAYED.events())));
    let left = PLAYED.replay();
    assert_eq!(story.left, (left.len(), ByteEstimate::TRIGGER.messages(&left)));
    let records: Vec<&CompactionRecord> = PLAYED
        .events()
        .iter()
        .filter_map(|logged| {
            if let Event::Compacted(record) = &logged.event { Some(&**record) } else { None }
        })
        .collect();
    let reports: Vec<(&CompactReport, Usage)> =
        story.done().map(|(one, done)| (done.report, one.usage)).collect();
    let expected: Vec<_> = records.iter().map(|record| (&record.report, record.usage)).collect();
    assert_eq!(reports, expected);
    for (compaction, done) in story.done() {
        let report = done.report;
        assert_eq!(
            (compaction.tokens, done.before.total()),
            (report.before.tokens, report.before.tokens)
        );
        assert_eq!(done.after.total(), report.after.tokens);
        assert_eq!(done.retention.as_ref(), report.retention.as_deref());
    }
    let undone = story.done().filter(|(_, done)| done.undone.is_some()).count();
    let failed =
        story.compactions.iter().filter(|one| matches!(one.outcome, Outcome::Failed { .. }));
    let failed = failed.count();
    assert!(
        undone == 1 && failed >= 1 && records.len() > 10,
        "{undone}, {failed}, {}",
        records.len()
    );
    let page = page(&PLAYED, Some(16_000));
    for record in records {
        assert!(page.contains(&format!("<article id=\"c{}\"", record.id)));
        let before = record.report.before.tokens;
        let before = format!("{},{:03}", before / 1_000, before % 1_000);
        assert!(page.contains(&format!("<b>{before}</b> tokens")), "{before}");
    }
}

#[test]
fn values_that_a_log_does_not_state_are_computed() {
    let mut log = EventLog::new("main".parse().unwrap());
    for text in ["Fix src/parse.rs. Never touch the lexer.", "Fine.", "Go on."] {
        log.append(Timestamp(1), Event::MessageAppended(Message::user(text))).unwrap();
    }
    let plan = plan(&log, "They talked.");
    let record =
        CompactionRecord::new(log.next_compaction(), CompactionReason::default(), "s", plan);
    log.append(Timestamp(2), Event::Compacted(Box::new(record))).unwrap();
    let said: Vec<Message> = log.originals().map(|(_, message)| message.clone()).collect();
    let expected = Facts::of(&said, &RetentionPolicy::default()).audit(&log.replay());
    let story = Story::of(&log, None);
    let (_, done) = story.done().next().unwrap();
    assert_eq!((done.retention.as_ref(), done.worked_out), (Some(&expected), true));
    let page = page(&log, None);
    assert!(page.contains("Never touch the lexer.") && page.contains("it was worked out"));
}

#[test]
fn many_compactions_and_long_texts_stay_below_a_megabyte() {
    let mut log = EventLog::new("main".parse().unwrap());
    let long = "<&> ".repeat(20_000);
    for number in 0..1_500 {
        for _ in 0..3 {
            let said = if number % 100 == 0 { long.as_str() } else { "Well." };
            log.append(Timestamp(1), Event::MessageAppended(Message::user(said))).unwrap();
        }
        let record = CompactionRecord::new(
            log.next_compaction(),
            CompactionReason::default(),
            "s",
            plan(&log, if number % 10 == 0 { &long } else { "They talked." }),
        );
        log.append(Timestamp(2), Event::Compacted(Box::new(record))).unwrap();
    }
    let page = page(&log, None);
    assert!(page.len() < MAX_BYTES, "{} bytes", page.len());
    let cards = page.matches("<article").count();
    assert!(cards > 20 && page.contains("are only in the table"), "{cards}");
}

#[test]
fn an_empty_log_has_a_page_too() {
    let page = page(&EventLog::new("main".parse().unwrap()), None);
    assert_whole(&page);
    assert!(page.contains("<h1>This thread was never compacted.</h1>"));
}
