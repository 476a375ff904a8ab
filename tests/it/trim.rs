//! Trimming tool results: the cases under `testdata/trim/`, and properties of every thread.
//!
//! A case is `--- options` in JSON, `--- thread`, and `--- expect N` with the thread after and the
//! number of results that became shorter.

use proptest::{option, prelude::*};
use threadfold::{
    ContentBlock, Message, Plan, Role,
    compact::trim,
    legality,
    message::{
        Image, Json, MediaSource, MessageParts, Text, TextBlock, Thinking, ToolResult, ToolUse,
        Usage,
    },
    strategy::{Brief, Rejection, Snapshot, StrategyError, TrimToolResults, View, without_model},
    testing::{answers, asked},
};
use threadfold_testing::{
    generate,
    notation::{parse, write},
    shared::cases,
};

use crate::support::tries::tries;

#[test]
fn trim_passes_its_cases() {
    for case in cases::read("testdata/trim").unwrap() {
        let options: TrimToolResults =
            serde_json::from_str(case.section("options").unwrap()).unwrap();
        let thread = parse(case.section("thread").unwrap()).unwrap();
        let (results, expected) = case.sections_of("expect").next().unwrap();
        let trimmed = trim(&thread, &options);
        let after = apply(&thread, &trimmed);
        assert_eq!(write(&after), write(&parse(expected).unwrap()), "{}", case.name);
        let pairs = self::results(&thread).into_iter().zip(self::results(&after));
        let count = pairs.filter(|(old, new)| old != new).count();
        assert_eq!(count.to_string(), results, "{}", case.name);
        assert_eq!(trimmed.is_empty(), count == 0, "{}", case.name);

        let again = trim(&after, &options);
        assert!(again.is_empty(), "{}", case.name);
    }
}

fn apply(thread: &[Message], plan: &Plan) -> Vec<Message> {
    let mut after = thread.to_vec();
    plan.apply(&mut after).unwrap();
    after
}

fn lines(count: usize) -> String {
    (0..count).map(|line| format!("line {line} of a file\n")).collect()
}

fn call(id: &str) -> ContentBlock {
    ToolUse::new(id, "read", Json::parse("{}").unwrap()).into()
}

/// A question, a round of one call with a result of forty lines, and an answer.
fn thread() -> Vec<Message> {
    vec![
        Message::user("Read it."),
        Message::new(Role::Assistant, vec![call("t1")]),
        Message::new(Role::User, vec![ToolResult::text("t1", lines(40)).into()]),
        Message::assistant("It has forty lines."),
    ]
}

fn everywhere() -> TrimToolResults {
    TrimToolResults { keep_recent: 0, ..TrimToolResults::default() }
}

#[test]
fn everything_except_the_text_of_results_stays() {
    let picture = ContentBlock::from(Image::new(MediaSource::Url { url: "a.png".into() }));
    let extra = threadfold::message::Extra::new("acme", [("mark", Json::default())]);
    let mut text = TextBlock::new(lines(40));
    text.extra = extra.clone();
    let mut result = ToolResult::new("t1", vec![picture.clone(), text.clone().into()]);
    (result.usage, result.extra, result.is_error) =
        (Some(Box::new(Usage::new(3, 4))), extra.clone(), true);
    let mut message = Message::new(Role::User, vec![result.clone().into()]);
    message.make_mut().content.push(ContentBlock::text("and then?"));
    message.make_mut().extra = extra;
    let thread = [Message::new(Role::Assistant, vec![call("t1")]), message.clone()];

    let options = TrimToolResults { keep_errors: false, ..everywhere() };
    let trimmed = trim(&thread, &options);
    text.text = format!("{}[660 bytes trimmed]", lines(3)).into();
    result.content = vec![picture, text.into()];
    message.make_mut().content[0] = result.into();
    let after = apply(&thread, &trimmed);
    assert_eq!(after, [thread[0].clone(), message]);
    assert!(after[0].ptr_eq(&thread[0]));
}

/// For each trimmed result five allocations: a text, the list of blocks of the result, that of the
/// message, the message, and the list of its splice. Shared blocks cost none.
#[test]
fn a_trimmed_result_costs_five_allocations_and_a_whole_one_none() {
    let rounds = |count: usize| (0..count).flat_map(|_| thread()).collect::<Vec<_>>();
    let allocations = |thread: &[Message], options: &TrimToolResults| {
        allocation_counter::measure(|| drop(trim(thread, options))).count_total
    };
    let (few, many) = (rounds(16), rounds(1_016));
    let added = allocations(&many, &everywhere()) - allocations(&few, &everywhere());
    // The list of splices also grows.
    assert!((5_000..5_010).contains(&added), "{added}");
    let untouched = TrimToolResults { lines: 40, ..everywhere() };
    assert_eq!(allocations(&many, &untouched), 0);
}

#[test]
fn a_marked_message_after_a_trimmed_result_costs_two_allocations() {
    let thought = Thinking::new("hm", Some("sig".into()));
    let thoughtful = Message::new(Role::Assistant, vec![thought.into(), ContentBlock::text("x")]);
    let allocations = |count: usize| {
        let mut thread = thread();
        thread.extend((0..count).map(|_| thoughtful.clone()));
        let plan_and_apply = || drop(trim(&thread, &everywhere()).apply(&mut thread));
        allocation_counter::measure(plan_and_apply).count_total
    };
    let (few, many) = (allocations(16), allocations(1_016));
    // For each: the list of the splice and the numbers of the blocks. The message is not copied.
    // The list of splices also grows.
    assert!((2_000..2_010).contains(&(many - few)), "{few} {many}");
}

#[test]
fn reasoning_after_the_first_trimmed_result_is_marked_and_kept() {
    let thought = || ContentBlock::from(Thinking::new("hm", Some("sig".into())));
    let mut thread = thread();
    thread.insert(1, Message::new(Role::Assistant, vec![thought()]));
    thread[4].make_mut().content.insert(0, thought());
    thread[4].make_mut().usage = Some(Usage::new(5, 6));
    let after = apply(&thread, &trim(&thread, &everywhere()));
    assert!(after[1].ptr_eq(&thread[1]), "messages before the first change keep their handles");
    assert_eq!(after[4], thread[4].clone().rewritten());
    let parts = |message: &Message| std::ptr::from_ref::<MessageParts>(message);
    assert_eq!(parts(&after[4]), parts(&thread[4]), "a mark copies nothing");
}

fn begin(strategy: TrimToolResults, thread: &[Message], brief: &Brief) -> Result<Plan, String> {
    let view = View::new(Snapshot::new(thread.to_vec()), brief.clone());
    let (calls, outcome) = asked(&strategy, &view, answers([""; 0]));
    assert!(calls.is_empty(), "the strategy calls no model");
    outcome.map(|proposal| proposal.plan).map_err(|error| error.to_string())
}

#[test]
fn the_strategy_reports_when_there_is_nothing_to_trim() {
    let error = begin(TrimToolResults::default(), &thread(), &Brief::default()).unwrap_err();
    let expected = "nothing to compact: none of 1 tool results becomes shorter if 3 lines of it \
                    stay and the last 8 messages are left alone";
    assert_eq!(error, expected);
}

#[test]
fn the_strategy_trims_no_more_than_the_target_requires() {
    let rounds = (0..6).flat_map(|_| thread()).collect::<Vec<_>>();
    let results = |target| {
        let plan =
            begin(TrimToolResults::default(), &rounds, &Brief { target, ..Brief::default() });
        let after = apply(&rounds, &plan.unwrap());
        let text = |result: &ToolResult| result.content[0].as_text().unwrap().lines().count();
        after
            .iter()
            .flat_map(|message| message.tool_results().map(text).collect::<Vec<_>>())
            .collect::<Vec<_>>()
    };
    let (four, two) = ([4; 4], [40; 2]);
    assert_eq!(results(None), [four.as_slice(), &two].concat());
    assert_eq!(results(Some(1_000)), [4, 4, 4, 40, 40, 40]);
    assert_eq!(results(Some(900)), [4, 4, 4, 4, 40, 40]);
    assert_eq!(results(Some(700)), [4, 4, 4, 4, 4, 40]);
    assert_eq!(results(Some(540)), [3, 3, 3, 3, 3, 40]);
    assert_eq!(results(Some(500)), [2, 2, 2, 2, 2, 40]);
    assert_eq!(results(Some(1)), [2; 6]);
}

#[test]
fn a_target_that_trimming_misses_is_refused_with_numbers() {
    let thread = thread();
    let brief = Brief { target: Some(1), ..Brief::default() };
    let plan = begin(TrimToolResults::default(), &thread, &brief).unwrap();
    let refused = Snapshot::new(thread).accept(&plan, &brief);
    assert_eq!(refused, Err(Rejection::OverTarget { after: 43, target: 1 }));
}

#[test]
fn results_next_to_the_newest_typed_text_are_trimmed_only_for_a_target() {
    let mut thread = thread();
    thread[2].make_mut().content.push(ContentBlock::text("Be quick."));
    let options = TrimToolResults { keep_recent: 0, ..TrimToolResults::default() };
    let failed = begin(options, &thread, &Brief::default());
    assert!(failed.unwrap_err().starts_with("nothing to compact"), "the only result is in it");
    let brief = Brief { target: Some(60), ..Brief::default() };
    let plan = begin(TrimToolResults::default(), &thread, &brief).unwrap();
    let after = Snapshot::new(thread.clone()).accept(&plan, &brief).unwrap();
    assert_eq!(after[2].content[1..], thread[2].content[1..]);
}

#[test]
fn options_are_read_from_json_and_unknown_ones_are_refused() {
    let strategy: TrimToolResults = serde_json::from_str(r#"{"lines":1,"bytes":null}"#).unwrap();
    let options = TrimToolResults { lines: 1, bytes: None, ..TrimToolResults::default() };
    assert_eq!(strategy, options);
    assert!(serde_json::from_str::<TrimToolResults>(r#"{"line":1}"#).is_err());
}

fn options() -> impl Strategy<Value = TrimToolResults> {
    let parts = (0_usize..6, option::of(0_usize..300), 0_usize..5, 0_usize..300, any::<bool>());
    parts.prop_map(|(lines, bytes, keep_recent, min_bytes, keep_errors)| TrimToolResults {
        lines,
        bytes,
        keep_recent,
        min_bytes,
        keep_errors,
        keep_media: true,
    })
}

fn results(thread: &[Message]) -> Vec<ToolResult> {
    thread.iter().flat_map(|message| message.tool_results().cloned()).collect()
}

fn texts(result: &ToolResult) -> Vec<Text> {
    result.content.iter().filter_map(ContentBlock::as_text).cloned().collect()
}

proptest! {
    #![proptest_config(tries(300))]

    #[test]
    fn trimming_keeps_legal_threads_legal_and_shares_unchanged_messages(
        thread in prop_oneof![generate::legal_thread(0..16), generate::junk_thread(0..14)],
        options in options(),
    ) {
        let plan = trim(&thread, &options);
        let after = apply(&thread, &plan);
        prop_assert_eq!(legality::violations(&after), legality::violations(&thread));

        // A message that the plan does not change is the same handle, not only equal.
        let touched = |index: &usize| plan.splices().iter().any(|splice| splice.at.contains(index));
        for index in (0..thread.len()).filter(|index| !touched(index)) {
            prop_assert!(after[index].ptr_eq(&thread[index]));
        }
        let (old, new) = (results(&thread), results(&after));
        prop_assert_eq!(old.len(), new.len());
        prop_assert_eq!(plan.is_empty(), old == new);
        for (old, new) in old.iter().zip(&new) {
            for (old, new) in texts(old).iter().zip(texts(new)) {
                prop_assert!(*old == new || new.len() < old.len(), "{old:?} became {new:?}");
            }
        }

        // Nothing else changed except the mark on reasoning.
        let bare = |thread: &[Message]| {
            let mut bare = thread.to_vec();
            for message in &mut bare {
                message.prefix_rewritten = false;
                for block in &mut message.make_mut().content {
                    if let ContentBlock::ToolResult(result) = block {
                        for block in &mut result.content {
                            if let ContentBlock::Text(text) = block { text.text = Text::default(); }
                        }
                    }
                }
            }
            bare
        };
        prop_assert_eq!(bare(&thread), bare(&after));
    }

    #[test]
    fn trimming_is_idempotent(
        thread in generate::legal_thread(0..16), options in options(),
    ) {
        let after = apply(&thread, &trim(&thread, &options));
        let again = trim(&after, &options);
        prop_assert!(again.is_empty(), "{:?}", again);
    }

    #[test]
    fn the_proposals_of_the_strategy_are_accepted(
        thread in generate::legal_thread(0..16), options in options(), target in option::of(50_u64..2_000),
    ) {
        let brief = Brief { target, ..Brief::default() };
        let snapshot = Snapshot::new(thread);
        let view = View::new(snapshot.clone(), brief.clone());
        match without_model(&options, &view) {
            Ok(proposal) => match snapshot.accept(&proposal.plan, &brief) {
                // Some bytes may be less than a token.
                Ok(_) | Err(Rejection::OverTarget { .. } | Rejection::NotSmaller { .. }) => {}
                Err(error) => prop_assert!(false, "{error}"),
            },
            Err(error) => {
                let nothing = matches!(error, StrategyError::NothingToCompact { .. });
                prop_assert!(nothing, "{error}");
            }
        }
    }
}
