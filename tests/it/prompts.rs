//! The requests to the model of a compaction.

use threadfold::{
    CompactionStrategy, ContentBlock, Message, Request, StrategyRegistry,
    message::{CompactionReason, Summary},
    render::ChunkBudget,
    strategy::{Brief, Chunked, ModelCall, Rolling, Snapshot, Summarize, View, without_model},
    testing::answers,
};

/// The strategies that ask a model for a summary, each with options in the form of settings.
const ASKING: [&str; 4] = [
    r#"{"summarize": OPTIONS}"#,
    r#"{"summarize": {"as_text": true, OPTIONS}}"#,
    r#"{"chunked": OPTIONS}"#,
    r#"{"rolling": OPTIONS}"#,
];

/// The strategies with these options, a list of JSON fields.
fn with_options(fields: &str) -> Vec<std::sync::Arc<dyn CompactionStrategy>> {
    let build = |form: &str| {
        let form = form.replace(", OPTIONS}", &format!(", {fields}}}")).replace(", }", "}");
        let json = form.replace("OPTIONS", &format!("{{{fields}}}"));
        let config = serde_json::from_str(&json).unwrap();
        StrategyRegistry::default().build(&config).unwrap()
    };
    ASKING.iter().map(|form| build(form)).collect()
}

fn talk() -> Vec<Message> {
    let turn = |number: usize| {
        let words = "and some more of it ".repeat(12);
        [
            Message::user(format!("Question {number} {words}")),
            Message::assistant(format!("Answer {number} {words}")),
        ]
    };
    (0..12).flat_map(turn).collect()
}

/// The thread of [`talk`] after a compaction: the user's kept words, a summary, and new messages.
fn compacted() -> Vec<Message> {
    let summary = Message::summary(threadfold::Role::User, Summary::new(EARLIER));
    [Message::user("Question of before."), summary].into_iter().chain(talk()).collect()
}

const EARLIER: &str = "## Request\n\n- Keep the tower lit.\n\n## Values\n\n- The port is 8443.";

fn focused() -> Brief {
    let reason = CompactionReason::Manual { instructions: Some("the lamp".into()) };
    Brief { reason, ..Brief::default() }
}

fn text_of(message: &Message) -> String {
    message.content.iter().filter_map(ContentBlock::as_text).map(|text| text.to_string()).collect()
}

/// The request of the first call.
fn asked(strategy: &dyn CompactionStrategy, thread: Vec<Message>, brief: &Brief) -> Request {
    let view = View::new(Snapshot::new(thread), brief.clone());
    let (calls, outcome) = threadfold::testing::asked(strategy, &view, answers([""; 0]));
    let first = calls.into_iter().next();
    first.unwrap_or_else(|| panic!("{}: {outcome:?}", strategy.name())).request
}

/// The texts of a request that do not come from the thread, as far as the last message has them.
fn question(request: &Request) -> String {
    text_of(request.messages.last().unwrap())
}

#[test]
fn every_strategy_asks_for_values_instead_of_descriptions() {
    for strategy in with_options("") {
        let question = question(&asked(strategy.as_ref(), talk(), &Brief::default()));
        let values = "Write values, not descriptions: names, numbers, dates, paths, commands and \
                      errors word for word";
        assert!(question.contains(values), "{}: {question}", strategy.name());
    }
}

#[test]
fn a_host_brings_its_own_prompt_and_sections_by_settings() {
    let fields =
        r#""prompt": "Write for the night shift.", "sections": ["Alarms, by hour.", "Keys."]"#;
    for strategy in with_options(fields) {
        let request = asked(strategy.as_ref(), talk(), &Brief::default());
        let (name, question) = (strategy.name(), question(&request));
        let system: String = request.system.iter().map(text_of).collect();
        assert!(question.contains("\n\n- Alarms, by hour.\n- Keys.\n\n"), "{name}: {question}");
        assert_eq!((system + &question).matches("Write for the night shift.").count(), 1, "{name}");
        for built_in in ["**Request.**", "causes before effects", "has grown too long"] {
            assert!(!question.contains(built_in), "{name}: {built_in}");
        }
        // The part on which the next compaction and the acceptance check rely stays.
        assert!(question.contains("Write values, not descriptions"), "{name}");
    }
}

#[test]
fn a_blank_prompt_and_a_blank_section_are_refused_before_a_call() {
    let rows = [
        (r#""prompt": " ""#, "prompt is blank; expected a text, or none for the built-in one"),
        (
            r#""sections": ["Keys.", "\n"]"#,
            "a section is blank; expected a text, or no sections for the built-in ones",
        ),
    ];
    for (fields, expected) in rows {
        for strategy in with_options(fields) {
            let view = View::new(Snapshot::new(talk()), Brief::default());
            let error = without_model(strategy.as_ref(), &view).unwrap_err();
            assert_eq!(error.to_string(), expected, "{}", strategy.name());
        }
    }
}

#[test]
fn a_focus_decides_the_order_in_every_strategy() {
    for strategy in with_options("") {
        let question = question(&asked(strategy.as_ref(), talk(), &focused()));
        let (_, after) = question.split_once("Begin every section with what concerns it").unwrap();
        assert!(after.contains("shorten everything else first:\n"), "{}", strategy.name());
        assert!(after.contains("the lamp"), "{}", strategy.name());
        let without = asked(strategy.as_ref(), talk(), &Brief::default());
        assert!(!self::question(&without).contains("pay special attention"), "{}", strategy.name());
    }
}

#[test]
fn an_update_is_requested_only_if_there_is_an_earlier_summary() {
    let strategy = Summarize::default();
    let update = "keep its lines that still hold word for word";
    let request = asked(&strategy, compacted(), &Brief::default());
    assert!(request.messages[1].is_summary(), "the cache of the provider may serve it");
    assert!(question(&request).contains(update));
    let first = asked(&strategy, talk(), &Brief::default());
    assert!(!question(&first).contains(update), "{}", question(&first));
}

#[test]
fn in_a_text_prompt_the_earlier_summary_is_separate_from_the_new_messages() {
    let strategy = Summarize { as_text: true, ..Summarize::default() };
    let request = asked(&strategy, compacted(), &Brief::default());
    let texts: Vec<String> = request.messages.iter().map(text_of).collect();
    let [summary, transcript, question] = &texts[..] else { panic!("{texts:?}") };
    assert_eq!(*summary, format!("<summary>\n{EARLIER}\n</summary>"));
    assert!(transcript.starts_with("<transcript>\n") && transcript.contains("Answer 3"));
    assert!(transcript.contains("Question of before.") && !transcript.contains("8443"));
    assert!(question.contains("Bring the earlier summary up to date instead of starting over"));
}

/// Small chunks, so that there are several.
fn chunked() -> Chunked {
    let chunks = ChunkBudget { target: 3_000, tolerance: 600 };
    Chunked { chunks, ..Chunked::default() }
}

/// The summary after answers by a script.
fn summary_after(strategy: &dyn CompactionStrategy, answers: Vec<threadfold::Answer>) -> String {
    let thread = Snapshot::new(compacted());
    let view = View::new(thread.clone(), Brief::default());
    let proposal =
        threadfold::testing::asked(strategy, &view, threadfold::testing::answers(answers))
            .1
            .unwrap();
    let after = proposal.plan.after(thread.messages()).unwrap();
    let blocks = after.iter().flat_map(|message| &message.content);
    let summary = blocks.filter_map(|block| match block {
        ContentBlock::Summary(summary) => Some(summary.text.to_string()),
        _ => None,
    });
    summary.collect()
}

#[test]
fn a_chunked_run_edits_the_earlier_summary_and_keeps_its_other_lines_word_for_word() {
    let strategy = chunked();
    let request = asked(&strategy, compacted(), &Brief::default());
    let prompt = question(&request);
    assert!(prompt.contains(&format!("<summary>\n{EARLIER}\n</summary>")), "{prompt}");
    assert!(prompt.contains("keep lines that still hold word for word"), "{prompt}");
    let (_, transcript) = prompt.split_once("<transcript>").unwrap();
    assert!(transcript.contains("Question 0") && !transcript.contains("8443"), "{transcript}");

    let edit = crate::chunked::append("e", "- Question 0 was asked.");
    let edit = Message::new(threadfold::Role::Assistant, vec![edit]);
    let stop = threadfold::message::StopReason::ToolUse;
    let mut answers = vec![threadfold::Answer::new(edit, stop, None)];
    answers.extend((0..20).map(|_| crate::chunked::says("Done.")));
    let summary = summary_after(&strategy, answers);
    assert_eq!(summary, format!("{EARLIER}\n- Question 0 was asked."));
}

#[test]
fn if_the_model_does_not_edit_the_earlier_summary_no_new_message_is_lost() {
    let answers: Vec<_> = (0..40).map(|_| crate::chunked::says("ok")).collect();
    let thread = Snapshot::new(compacted());
    let brief = Brief::from(thread.counter().messages(thread.messages()) / 2);
    let view = View::new(thread, brief);
    let proposal =
        threadfold::testing::asked(&chunked(), &view, threadfold::testing::answers(answers))
            .1
            .unwrap();
    let note = "summarised without a model: the whole thread";
    assert!(proposal.notes[0].starts_with(note), "{:?}", proposal.notes);
}

#[test]
fn earlier_batches_are_separate_and_only_new_content_is_requested() {
    let strategy = Rolling { chunk_messages: 6, ..Rolling::default() };
    let view = View::new(Snapshot::new(talk()), Brief::default());
    let (calls, _) = threadfold::testing::asked(&strategy, &view, answers(["The port is 8443."]));
    let [_, ModelCall { request, .. }, ..] = calls.as_slice() else {
        panic!("there are several chunks")
    };
    let so_far = text_of(&request.system[1]);
    assert!(so_far.ends_with("<summary-so-far>\nThe port is 8443.\n</summary-so-far>"));
    assert!(question(request).contains("The account of earlier stretches is kept beside yours"));
}
