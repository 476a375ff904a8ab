//! Facts that a summary invents are found, and facts of the thread are not mistaken for inventions.

use std::sync::Arc;
use threadfold::{
    ContentBlock, Message, Plan,
    compact::{Insert, Splice},
    message::{Role, Summary},
    retention::{FactClass, Facts, RetentionPolicy, invented},
    strategy::{Brief, Proposal, Snapshot},
    wire::{DecodeOptions, Dialect, WireFormat},
};

use crate::support::recorded::requests;

/// Sentences of a model about another project.
const PLANTS: [&str; 28] = [
    "The production database is Oracle in Frankfurt.",
    "Maria Gonzalez approved the change.",
    "The user, Quentin, lives near the office.",
    "You must always run the linter before a commit.",
    "Never mention the budget to the customer.",
    "Make sure to always answer in French.",
    "Do not touch the billing module.",
    "The assistant should always reply with a haiku.",
    "The budget is 45,000 dollars.",
    "The deadline is March 14.",
    "The server listens on port 9443.",
    "The tests took 93 seconds, and coverage rose to 87%.",
    "The fix is in PaymentGateway.charge.",
    "It was released as v9.41.7 from 0f1e2d3c4b.",
    "They edited src/planted/grove.rs and `plant_the_grove`.",
    "They ran `cargo plant --deep`.",
    "The page is https://grove.example/planted.",
    "The lost file was at /srv/planted/grove.txt.",
    "The contact is grove@planted.example.",
    "See www.grove-planted.example for more.",
    "The meeting begins at 19:35.",
    "The call was at twenty past seven.",
    "The next review is on Wednesday.",
    "Leopold confirmed the plan.",
    "Seventeen people were invited.",
    "They ran git bisect to find it.",
    "Debes contestar siempre en verso.",
    "\u{5fc5}\u{987b}\u{59cb}\u{7ec8}\u{7528}\u{8bd7}\u{6b4c}\u{56de}\u{7b54}\u{3002}",
];

/// A thread of the examples and every real one.
fn threads() -> Vec<Arc<Vec<Message>>> {
    let body = include_bytes!("../../examples/data/coding-thread.json");
    let example = Dialect::Anthropic.decode_slice(body, &DecodeOptions::default()).unwrap();
    let others = requests().into_iter().map(|(_, _, request)| request.messages);
    std::iter::once(example.messages).chain(others).collect()
}

fn texts(thread: &[Message]) -> String {
    let blocks = thread.iter().flat_map(|message| &message.content);
    let texts = blocks.filter_map(ContentBlock::as_text).map(ToString::to_string);
    texts.collect::<Vec<_>>().join("\n\n")
}

#[test]
fn text_of_the_thread_is_not_invented() {
    for thread in threads() {
        let facts = Facts::of(&thread, &RetentionPolicy::default());
        assert_eq!(invented(&texts(&thread), &facts, &thread[..]), []);
        // Sentences in another order, as a model picks them.
        let text = texts(&thread);
        let sentences: Vec<&str> = text.split_inclusive(". ").collect();
        for step in [3, 7] {
            let picked: Vec<&str> = sentences.iter().rev().step_by(step).copied().collect();
            let picked = picked.join("\n\n");
            assert_eq!(invented(&picked, &facts, &thread[..]), []);
        }
    }
}

#[test]
fn nine_in_ten_planted_inventions_are_found() {
    let threads = threads();
    let mut found = 0;
    for thread in &threads {
        let facts = Facts::of(thread, &RetentionPolicy::default());
        for plant in PLANTS {
            let summary = format!("They went on with it. {plant} Then it was late.");
            let is_found = !invented(&summary, &facts, thread.iter()).is_empty();
            found += usize::from(is_found);
            if !is_found {
                println!("missed: {plant}");
            }
        }
    }
    let planted = threads.len() * PLANTS.len();
    println!("{found} of {planted} planted inventions are found");
    assert!(found * 10 >= planted * 9, "{found} of {planted}");
}

#[test]
fn nine_in_ten_facts_of_another_thread_are_found_as_invented() {
    let threads = threads();
    let (mut planted, mut found) = (0, 0);
    for (at, thread) in threads.iter().enumerate() {
        let facts = Facts::of(thread, &RetentionPolicy::default());
        let all = format!("{thread:?}").to_lowercase();
        let other = &threads[(at + 5) % threads.len()];
        let missing = Facts::of(other, &RetentionPolicy::default()).audit(&[]).missing;
        let checked = missing.into_iter().filter(|fact| {
            let class = fact.class;
            // Tasks, quotations and errors are whole sentences. Their words may be in this thread
            // in another order, so they need not count as invented.
            !matches!(class, FactClass::Task | FactClass::Quote | FactClass::Error)
                && !all.contains(&fact.text.to_lowercase())
        });
        for fact in checked.take(40) {
            let summary = format!("They went on. The next one was `{}`, as said.", fact.text);
            planted += 1;
            found += usize::from(!invented(&summary, &facts, thread.iter()).is_empty());
        }
    }
    println!("{found} of {planted} facts of other threads are found");
    assert!(found * 10 >= planted * 9, "{found} of {planted}");
}

#[test]
fn a_policy_removes_invented_facts_and_reports_them() {
    let padding = "Words without much in them. ".repeat(40);
    let typed = Message::user(format!("Fix src/parse.rs. {padding}"));
    let thread = vec![typed, Message::assistant("It took 12 ms."), Message::user("Go on.")];
    let text =
        "They fixed src/parse.rs. It took 950 ms.\n- Always ask Ada Byron first.\n- It works.";
    let message = Message::summary(Role::User, Summary::new(text));
    let splice = Splice { at: 0..2, insert: vec![Insert::Message { message }] };
    let proposal = Proposal::new(Plan::from_splices(3, vec![splice]));
    let settle = |strikes_invented: bool| {
        let max_invented = Some(0);
        let policy =
            RetentionPolicy { strikes_invented, max_invented, ..RetentionPolicy::default() };
        let brief = Brief { retention: Some(policy), ..Brief::default() };
        Snapshot::new(thread.clone()).settle(proposal.clone(), &brief).unwrap()
    };
    let refused = settle(false);
    assert!(refused.shortfall.is_some());
    let struck = settle(true);
    assert_eq!(struck.shortfall, None);
    let after = format!("{:?}", struck.plan.new_messages().collect::<Vec<_>>());
    assert!(after.contains("They fixed src/parse.rs.") && after.contains("It works."), "{after}");
    assert!(!after.contains("950 ms") && !after.contains("Ada Byron"), "{after}");
    let reported = struck.retention.unwrap().invented;
    let texts: Vec<&str> = reported.iter().map(|fact| fact.text.as_str()).collect();
    assert_eq!(texts, ["Always ask Ada Byron first.", "950 ms"]);
}
