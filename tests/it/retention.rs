//! The facts that an audit finds: cases as data, planted facts, real threads marked by hand,
//! hostile texts.

use std::{collections::BTreeSet, fs};

use proptest::prelude::*;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;
use threadfold::{
    ContentBlock, Message, Role,
    message::{Summary, ToolResult, ToolUse},
    retention::{Fact, FactClass, Facts, Retention, RetentionPolicy, addendum, audit, enrich},
    tokens::{ByteEstimate, TokenCounter},
};
use threadfold_testing::generate;

use crate::support::{recorded, tries::tries};

const COUNTER: ByteEstimate = ByteEstimate::TRIGGER;

/// A text of a user, the texts that keep its fact, and texts that only resemble it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    class: FactClass,
    before: String,
    kept: Vec<String>,
    missing: Vec<String>,
}

/// Texts that hold no fact of a class.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoFacts {
    class: FactClass,
    texts: Vec<String>,
}

/// A fact that a reader marked in a real thread.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct Mark {
    file: String,
    message: usize,
    block: usize,
    offset: usize,
    length: usize,
    class: FactClass,
}

fn read<T: DeserializeOwned>(name: &str) -> Vec<T> {
    let text = fs::read_to_string(format!("testdata/retention/{name}.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn all() -> RetentionPolicy {
    RetentionPolicy { tool_mentions: 1, ..RetentionPolicy::default() }
}

#[test]
fn a_fact_is_kept_only_by_a_text_that_states_it_as_a_whole() {
    let mut wrong = Vec::new();
    for case in read::<Case>("classes") {
        let before = [Message::user(case.before.as_str())];
        let recall = |after: &str| {
            let retention = audit(&before, &[Message::assistant(after)], &all());
            let recall = retention.of(case.class);
            (recall.facts, recall.kept)
        };
        let kept = case.kept.iter().map(|after| (after, (1, 1)));
        for (after, expected) in kept.chain(case.missing.iter().map(|after| (after, (1, 0)))) {
            let found = recall(after);
            if found != expected {
                wrong.push(format!("{}: {after:?}: {found:?}", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn texts_without_facts_yield_none() {
    let mut wrong = Vec::new();
    for case in read::<NoFacts>("none") {
        for text in case.texts {
            let retention = audit(&[Message::user(text.as_str())], &[], &all());
            let found = retention.missing.iter().filter(|fact| fact.class == case.class);
            wrong.extend(found.map(|fact| format!("{}: {text:?}: {:?}", case.class, fact.text)));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// A fact of each class that no other text states, made from a number.
fn planted(class: FactClass, n: usize) -> String {
    match class {
        FactClass::Task => format!("- [ ] open drawer number {n}"),
        FactClass::Error => format!("ValueError: drawer {n} is stuck"),
        FactClass::Path => format!("drawers/folder{n}/list{n}.rs"),
        FactClass::Url => format!("https://example.org/drawers/{n}"),
        FactClass::Command => format!("```bash\nopen-drawer --number={n} now\n```"),
        FactClass::Identifier => format!("drawer_number_{n}x"),
        FactClass::Version => format!("7.{n}.19"),
        FactClass::Hash => format!("abc{:08}def", n + 77),
        FactClass::Number => format!("{} MHz", 70_000 + n),
        FactClass::Quote => format!("\u{201c}the drawer of {n}\u{201d}"),
    }
}

/// A text that states facts of every class, with signs that separate or join words.
fn stating() -> impl Strategy<Value = String> {
    let parts = proptest::sample::select(vec![
        "It costs $344.",
        "$1,234.50 a month",
        "(12 ms)",
        "40%",
        "12 ms",
        "between 3 days",
        "Never touch src/a.rs.",
        "Always use `tabs`, don`t ask!",
        "You must say \u{201c}please\u{201d}.",
        "- [ ] write docs/guide.md",
        "error[E0502]: cannot borrow `x`",
        "HTTP 404",
        "https://example.com/a?b=1",
        "localhost:3000",
        "```bash\ncargo test --all `x`\n```",
        "$ git push -f",
        "snake_case CamelCase --flag ENV_NAME",
        "v1.2.3 and Python 3.12",
        "3f2a9c1d0b",
        "checkpoint a1b2c3",
        "`",
        "'",
        "**",
        "$",
        "\"",
        "</",
        "#",
    ]);
    let ends = proptest::sample::select(vec![" ", "\n", "\n\n", ". ", ""]);
    let part = prop_oneof![8 => parts.prop_map(str::to_owned), 1 => "\\PC{0,20}"];
    proptest::collection::vec((part, ends), 1..7)
        .prop_map(|parts| parts.into_iter().flat_map(|(part, end)| [part, end.into()]).collect())
}

/// A text with single blanks between its words.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

proptest! {
    #![proptest_config(tries(48))]

    #[test]
    fn planted_facts_are_found_and_dropped_ones_are_counted(
        thread in generate::legal_thread(4..20),
        class in proptest::sample::select(FactClass::ALL.to_vec()),
        count in 1_usize..12,
        bits in any::<u16>(),
    ) {
        let mut before = Vec::new();
        for n in 0..count {
            before.push(Message::user(planted(class, n)));
            before.extend(thread.get(n).cloned());
        }
        let reported: Vec<String> = (0..count).filter(|n| bits & (1 << n) != 0).map(|n| planted(class, n)).collect();
        // The facts that the thread itself states are in both threads.
        let mut after: Vec<Message> = thread.iter().take(count).cloned().collect();
        after.push(Message::assistant(format!("It said:\n\n{}\n", reported.join("\n\n"))));
        let retention = audit(&before, &after, &RetentionPolicy::default());
        let recall = retention.of(class);
        prop_assert_eq!((recall.facts, recall.kept), (count as u64, reported.len() as u64), "{:?}", retention.missing);
        let text = serde_json::to_string(&retention).unwrap();
        prop_assert_eq!(serde_json::from_str::<Retention>(&text).unwrap(), retention);
    }

    #[test]
    fn a_fact_is_found_in_its_own_text_and_in_a_list(text in stating()) {
        for message in [Message::user(text.as_str()), Message::assistant(text.as_str())] {
            let summary = Message::summary(Role::User, Summary::new(text.as_str()));
            for after in [Message::assistant(text.as_str()), summary] {
                let lost = audit(std::slice::from_ref(&message), &[after], &all()).missing;
                prop_assert_eq!(lost, []);
            }
            for fact in audit(&[message], &[], &all()).missing {
                let listed = format!("What is known:\n- {}\n", fact.text);
                let after = Message::summary(Role::User, Summary::new(listed));
                let same = Facts::of(&[Message::user(text.as_str())], &all());
                let lost = same.audit(&[after]).missing;
                let lost = lost.iter().any(|other| (other.class, &other.text) == (fact.class, &fact.text));
                prop_assert!(!lost, "{:?}", fact);
            }
        }
    }

    #[test]
    fn facts_of_remaining_messages_are_never_missing(thread in generate::junk_thread(0..12)) {
        let retention = audit(&thread, &thread, &all());
        prop_assert_eq!(retention, Retention::default());
    }

    #[test]
    fn a_summary_of_all_texts_keeps_all(thread in generate::legal_thread(0..12)) {
        let retention = audit(&thread, &[], &RetentionPolicy::default());
        let after: Vec<Message> = thread.iter().map(|message| {
            let mut message = message.clone();
            message.make_mut().content.push(ContentBlock::text("and more"));
            message
        }).collect();
        let kept = audit(&thread, &after, &RetentionPolicy::default());
        prop_assert_eq!(kept.overall.kept, retention.overall.facts, "{:#?}", kept.missing);
    }

    #[test]
    fn an_addendum_fits_its_budget_and_keeps_the_facts_that_it_lists(thread in generate::legal_thread(0..16), budget in 0_u64..300) {
        let retention = audit(&thread, &[], &RetentionPolicy::default());
        let Some(found) = addendum(&retention, budget, &COUNTER) else { return Ok(()) };
        prop_assert!(COUNTER.text(&found) <= budget);
        let short = ["Names: ", "Versions: ", "Hashes: ", "Numbers: "];
        let short = |line: &'_ str| short.iter().find_map(|title| line.strip_prefix(title).map(str::to_owned));
        let mut items = found.lines().flat_map(|line| match (line.strip_prefix("- "), short(line)) {
            (Some(item), _) => vec![item.to_owned()],
            (None, Some(items)) => items.split(", ").map(str::to_owned).collect(),
            (None, None) => Vec::new(),
        }).peekable();
        prop_assert!(items.peek().is_some());
        let lost: Vec<String> = retention.missing.iter().map(|fact| one_line(&fact.text)).collect();
        prop_assert!(items.all(|item| lost.contains(&item)), "{found}");
        prop_assert!(!found.contains("</"));
    }
}

/// Returns the form in which this test compares facts: one line, without colours and surrounding
/// marks.
fn bare(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, escape)) = rest.split_once('\u{1b}') {
        out.push_str(before);
        rest = escape.split_once(|c: char| c.is_ascii_alphabetic()).map_or("", |(_, rest)| rest);
    }
    out.push_str(rest);
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn marked(message: &Message, mark: &Mark) -> String {
    let text = match &message.content[mark.block] {
        ContentBlock::Text(block) => block.text.as_str(),
        ContentBlock::ToolUse(call) => call.input.as_str(),
        ContentBlock::ToolResult(result) => result.content[0].as_text().unwrap(),
        other => panic!("{mark:?} is in {}", other.kind()),
    };
    bare(&text[mark.offset..mark.offset + mark.length])
}

/// A fact of a thread of `testdata/threads`.
#[derive(Debug, Deserialize)]
struct Named {
    file: String,
    class: FactClass,
    text: String,
}

#[test]
fn nine_of_ten_facts_named_by_hand_are_found() {
    let requests = recorded::requests();
    let (mut total, mut missed) = (0, Vec::new());
    for named in read::<Named>("named") {
        let (_, _, request) = requests.iter().find(|(name, _, _)| *name == named.file).unwrap();
        let retention = audit(&request.messages, &[], &RetentionPolicy::default());
        let found = retention.missing.iter().any(|fact| {
            let path = named.class == FactClass::Path && fact.text.ends_with(&named.text);
            fact.class == named.class && (path || *fact.text == *named.text)
        });
        total += 1;
        if !found {
            missed.push(format!("{}: {} {:?}", named.file, named.class, named.text));
        }
    }
    println!("{} of {total} missed:\n{}", missed.len(), missed.join("\n"));
    assert!(total >= 40 && missed.len() * 10 <= total, "{}", missed.join("\n"));
}

#[test]
fn nine_of_ten_facts_marked_by_hand_are_found() {
    let requests = recorded::requests();
    let (mut total, mut missed) = (0, Vec::new());
    for mark in read::<Mark>("annotated") {
        // The marked threads are in a folder that `THREADFOLD_TRANSCRIPTS` names.
        let Some((_, _, request)) = requests.iter().find(|(name, _, _)| *name == mark.file) else {
            return;
        };
        let retention = audit(&request.messages, &[], &RetentionPolicy::default());
        let expected = marked(&request.messages[mark.message], &mark);
        // Other spellings of a path are the same fact, under the longest of them.
        let same = |fact: &Fact| {
            let path = mark.class == FactClass::Path && fact.text.ends_with(&expected);
            fact.text == *expected || path
        };
        let found = retention.missing.iter().any(|fact| {
            fact.class == mark.class && same(fact) && fact.positions.contains(&mark.message)
        });
        total += 1;
        if !found {
            missed.push(format!(
                "{} of message {} in {}: {expected:?}",
                mark.class, mark.message, mark.file
            ));
        }
    }
    println!("{} of {total} missed:\n{}", missed.len(), missed.join("\n"));
    let has_them = std::env::var_os("THREADFOLD_TRANSCRIPTS").is_some();
    assert!((total >= 38 || !has_them) && missed.len() * 10 <= total, "{}", missed.join("\n"));
}

#[test]
fn a_later_box_closes_a_task_and_so_does_a_tool() {
    let list = |state: &str| {
        let input = json!({"todos": [{"content": "write the docs", "status": state}]});
        Message::new(Role::Assistant, vec![ToolUse::new("t1", "todo", input).into()])
    };
    let open = |before: &[Message]| audit(before, &[], &all()).of(FactClass::Task).facts;
    assert_eq!(open(&[list("pending")]), 1);
    assert_eq!(open(&[list("pending"), list("completed")]), 0);
    assert_eq!(open(&[list("completed"), list("in_progress")]), 1);
    let boxes = |mark: &str| Message::assistant(format!("- [{mark}] write the docs"));
    assert_eq!(open(&[boxes(" "), boxes("x")]), 0);
}

#[test]
fn commands_are_found_in_calls_of_every_shape() {
    let call = |input: serde_json::Value| {
        let call = ToolUse::new("t1", "shell", input);
        audit(&[Message::new(Role::Assistant, vec![call.into()])], &[], &all()).missing
    };
    for input in [
        json!({"command": "make all"}),
        json!({"cmd": "make all"}),
        json!({"command": ["bash", "-lc", "make all"]}),
        json!({"command": ["make", "all"], "workdir": "."}),
    ] {
        let facts = call(input.clone());
        assert!(
            facts.iter().any(|fact| fact.class == FactClass::Command && fact.text == "make all"),
            "{input}"
        );
    }
}

#[test]
fn names_that_only_tools_state_count_if_they_are_frequent() {
    let result = |id: &str| {
        Message::new(
            Role::User,
            vec![ToolResult::text(id.to_owned(), format!("{id}: max_size")).into()],
        )
    };
    let facts = |count: usize| {
        let ids = ["a", "b", "c"];
        let before: Vec<Message> = ids[..count].iter().map(|id| result(id)).collect();
        audit(&before, &[], &RetentionPolicy::default()).of(FactClass::Identifier).facts
    };
    assert_eq!((facts(2), facts(3)), (0, 1));
}

#[test]
fn a_policy_accepts_a_summary_or_states_the_reason() {
    let before = [Message::user("Fix src/parse.rs. Never touch the lexer.")];
    let whole = "Fix src/parse.rs; never touch the lexer.";
    let facts = Facts::of(&before, &RetentionPolicy::default());
    let of = |summary: &str, policy: &RetentionPolicy| {
        let (text, retention) = enrich(summary, &facts, &[], policy, &COUNTER);
        (policy.shortfall(&retention), text)
    };
    let policy = RetentionPolicy::default();
    assert_eq!(of(whole, &policy), (None, whole.into()));
    let silent = RetentionPolicy { addendum_tokens: 0, ..policy.clone() };
    let few = "the summary keeps 0 % of the facts by weight; the minimum is 30 %";
    assert_eq!(of("Fine.", &silent), (Some(few.into()), "Fine.".into()));
}

#[test]
fn an_addendum_restores_each_class_to_the_wanted_share_and_no_further() {
    let path = |n: u32| format!("Look at src/part_{n}.rs.");
    let call = |n: u32| {
        let input = json!({ "command": format!("cargo test --test suite_{n}") });
        Message::new(Role::Assistant, vec![ToolUse::new("t", "bash", input).into()])
    };
    let said = (0..20).flat_map(|n| [Message::assistant(path(n)), call(n)]);
    let facts = Facts::of(&said.collect::<Vec<_>>(), &all());
    let of = |wanted, addendum_tokens| {
        let policy = RetentionPolicy { wanted, addendum_tokens, ..RetentionPolicy::default() };
        let (text, retention) = enrich("Fine.", &facts, &[], &policy, &COUNTER);
        (&*text != "Fine." && policy.shortfall(&retention).is_none()).then_some(retention)
    };
    let percents = |retention: &Retention| {
        [FactClass::Path, FactClass::Command].map(|class| retention.of(class).weight_percent())
    };
    let half = percents(&of(50, 4_000).unwrap());
    assert!(half.iter().all(|percent| (50..60).contains(percent)), "{half:?}");
    // If there is room for only some facts, the paths, which are short, do not take all of it.
    let tight = percents(&of(100, 200).unwrap());
    assert!(tight.iter().all(|percent| (20..80).contains(percent)), "{tight:?}");
    assert!(tight[0].abs_diff(tight[1]) <= 10, "{tight:?}");
    assert_eq!(percents(&of(100, 4_000).unwrap()), [100, 100]);
}

#[test]
fn an_addendum_cannot_forge_a_list_or_a_tag() {
    let task = "Write <checkpoint:a1b2c3> or `# user:` here, however `often` a tool asks.";
    let retention = audit(&[Message::user(format!("- [ ] {task}"))], &[], &all());
    let found = addendum(&retention, 1_000, &COUNTER).unwrap();
    assert!(found.contains(task), "{found}");
    assert!(
        found.lines().all(|line| {
            line.is_empty()
                || line.starts_with("- ")
                || line.starts_with("Names: ")
                || line.ends_with(':')
        }),
        "{found}"
    );
}

#[test]
fn facts_beyond_the_caps_are_counted() {
    let paths: Vec<String> = (0..50).map(|n| format!("src/file{n}.rs")).collect();
    let options = RetentionPolicy { max_facts: 20, max_fact_bytes: 40, ..all() };
    let long = format!("- [ ] never {}.", "ever ".repeat(40));
    let before = [Message::user(paths.join(" ")), Message::user(long)];
    let retention = audit(&before, &[], &options);
    assert_eq!((retention.missing.len(), retention.left_out, retention.too_long), (20, 30, 1));
}

#[test]
fn hostile_texts_are_audited_in_bounded_time_and_space() {
    const MANY: usize = 1 << 16;
    let texts = [
        "a".repeat(1 << 20),
        "\"".repeat(1_000_000),
        "`".repeat(MANY),
        "\u{201c}".repeat(MANY / 3),
        "a.".repeat(MANY / 2),
        "a::".repeat(MANY / 3),
        "a/".repeat(MANY / 2),
        "://".repeat(MANY / 3),
        "http://a".repeat(MANY / 8),
        "1".repeat(MANY),
        "1 ms".repeat(MANY / 4),
        "never a b ".repeat(MANY / 10),
        "never a. ".repeat(MANY / 9),
        "- [ ] ".repeat(MANY / 6),
        "TODO:".repeat(MANY / 5),
        "checkpoint".repeat(MANY / 10),
        "\u{1b}[".repeat(MANY / 2),
        "Error: ".repeat(MANY / 7),
        "))".repeat(MANY / 2),
        "(".repeat(MANY),
        "a_".repeat(MANY / 2),
        "\n".repeat(MANY),
    ];
    for text in texts {
        let before = [Message::user(text.as_str())];
        let retention = audit(&before, &[Message::assistant(format!("x {text}"))], &all());
        assert!(retention.missing.len() <= 4_000, "{:.20}", text);
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let input = threadfold::message::Json::parse(&deep).unwrap();
    let call = ToolUse::new("t1", "x", input);
    let before = [Message::new(Role::Assistant, vec![call.into()])];
    assert_eq!(audit(&before, &[], &all()).overall.facts, 0);
}

#[test]
fn an_audit_is_the_same_every_time() {
    let thread = generate::legal_thread_from(7, 300);
    let facts: BTreeSet<String> = (0..3)
        .map(|_| serde_json::to_string(&audit(&thread, &thread[150..], &all())).unwrap())
        .collect();
    assert_eq!(facts.len(), 1);
}

#[test]
fn the_retention_of_an_enriched_summary_equals_its_audit() {
    let thread = generate::legal_thread_from(11, 200);
    let (facts, after) = (Facts::of(&thread, &all()), &thread[150..]);
    let rule = [Message::user("- [ ] Mend the lexer.\n\nFix src/deep/parse.rs.")];
    let facts = rule.iter().fold(facts, |mut facts, message| {
        facts.read(message);
        facts
    });
    let policy = RetentionPolicy { minimum: 0, ..RetentionPolicy::default() };
    let (text, retention) = enrich("All went well.", &facts, after, &policy, &COUNTER);
    assert!(text.contains("- Mend the lexer."), "{text}");
    let standing = |summary: &str| {
        let mut standing = after.to_vec();
        standing.push(Message::summary(Role::User, Summary::new(summary)));
        standing
    };
    let bare = RetentionPolicy { addendum_tokens: 0, ..policy.clone() };
    let (_, without) = enrich("All went well.", &facts, after, &bare, &COUNTER);
    assert_eq!(without, facts.audit(&standing("All went well.")));
    assert_eq!(retention, facts.audit(&standing(&text)));
}

#[test]
fn a_fact_in_every_message_has_a_limited_number_of_positions() {
    let mut facts = Facts::new(&RetentionPolicy::default());
    let message = Message::user("See src/parse.rs.");
    (0..20_000).for_each(|_| facts.read(&message));
    let retention = facts.audit(&[]);
    let expected: Vec<usize> = (0..63).chain([19_999]).collect();
    assert_eq!(retention.missing[0].positions, expected);
    assert_eq!(retention.missing[0].weight, 8 * 8 * 8);
}
