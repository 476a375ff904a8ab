//! Edits by position: the cases under `testdata/edits/`.
//!
//! A case is `--- thread`, any number of `--- edit M.B..M.B` (message and block of its start and
//! its end, the body is the inserted messages), then `--- expect` with the thread after, or `---
//! expect error` with the text of the error.

use std::ops::Range;
use threadfold::{
    Message, Plan, Replacement, Role,
    compact::{CompactError, CompactOptions, Position},
    legality,
    message::{CompactionId, Summary},
};
use threadfold_testing::{
    notation,
    shared::cases::{self, Case},
};

#[test]
fn edits_pass_their_cases() {
    for case in cases::read("testdata/edits").unwrap() {
        let thread = notation::parse(case.section("thread").unwrap()).unwrap();
        match (edited(&case, &thread), case.section("expect"), case.section("expect error")) {
            (Ok(messages), Some(expected), None) => {
                assert_eq!(notation::write(&messages), expected, "{}", case.name);
                assert_eq!(legality::violations(&messages), [], "{}", case.name);
            }
            (Err(error), None, Some(expected)) => {
                assert_eq!(error.to_string(), expected.trim_end(), "{}", case.name);
            }
            (found, ..) => panic!("{}: {found:?}", case.name),
        }
    }
}

#[test]
fn a_summary_has_the_number_of_its_compaction() {
    for compaction in [None, Some(CompactionId(7))] {
        let options = CompactOptions { compaction, ..CompactOptions::default() };
        let plan = Plan::new(&[Message::user("hi")], &[Replacement::new("A greeting.")], &options);
        let mut summary = Summary::new("A greeting.");
        summary.compaction = compaction;
        let expected = [Message::summary(Role::Assistant, summary)];
        assert!(plan.unwrap().new_messages().eq(&expected));
    }
}

#[test]
fn stripped_blocks_are_counted() {
    let thread = "# user\nHello\n# user\n[reminder] be brief\n[text] Well?\n# assistant\n[thinking] hm\n[text] Yes.";
    let thread = notation::parse(thread).unwrap();
    let edit = (Position::before(0)..Position::before(1), Vec::new());
    let plan = Plan::from_edits(&thread, vec![edit], &CompactOptions::default()).unwrap();
    assert_eq!((plan.blocks_stripped(), plan.first_touched()), (2, 0));
}

#[test]
fn messages_that_stay_whole_after_an_edit_share_their_handles() {
    let thread = [Message::user("one"), Message::assistant("two"), Message::user("three")];
    let edit = (Position::before(0)..Position::before(1), Vec::new());
    let plan = Plan::from_edits(&thread, vec![edit], &CompactOptions::default()).unwrap();
    let touched: Vec<usize> = plan.splices().iter().flat_map(|splice| splice.at.clone()).collect();
    assert_eq!(touched, [0]);
}

#[test]
fn the_first_touched_message_is_the_one_of_the_first_edit() {
    let thread = ["one", "two", "three"].map(Message::user);
    let touched = |from: usize, to: usize| {
        let edit = (Position::before(from)..Position::before(to), Vec::new());
        Plan::from_edits(&thread, vec![edit], &CompactOptions::default()).unwrap().first_touched()
    };
    assert_eq!([touched(0, 1), touched(1, 3), touched(2, 3)], [0, 1, 2]);
    let nothing = Plan::from_edits(&thread, Vec::new(), &CompactOptions::default()).unwrap();
    assert_eq!((nothing.first_touched(), nothing.is_empty()), (3, true));
}

fn edited(case: &Case, thread: &[Message]) -> Result<Vec<Message>, CompactError> {
    let edits = case.sections_of("edit").map(|(range, insert)| edit(range, insert)).collect();
    let plan = Plan::from_edits(thread, edits, &CompactOptions::default())?;
    assert_eq!(plan.messages_before(), thread.len(), "{}", case.name);
    let mut messages = thread.to_vec();
    plan.apply(&mut messages).unwrap();
    assert_eq!(plan.messages_after(), messages.len(), "{}", case.name);
    Ok(messages)
}

fn edit(range: &str, insert: &str) -> (Range<Position>, Vec<Message>) {
    let (start, end) = range.split_once("..").unwrap();
    (position(start)..position(end), notation::parse(insert).unwrap())
}

fn position(text: &str) -> Position {
    let (message, block) = text.split_once('.').unwrap();
    Position { message: message.parse().unwrap(), block: block.parse().unwrap() }
}
