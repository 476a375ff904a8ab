//! Typed text in languages without word lists stays, word for word.

use std::{collections::BTreeMap, sync::Arc};

use futures::executor::block_on;
use serde::Deserialize;
use threadfold::{
    ContentBlock, ModelAgent, Session, message::ContextWindow, testing::ScriptedModel,
};

#[derive(Deserialize)]
struct Language {
    /// The standing rules of the user.
    rules: Vec<String>,
    /// The user's repeated request, with `{}` for a number.
    request: String,
    /// The model's repeated answer, which is also its answer to a request for a summary.
    answer: String,
}

#[test]
fn rules_in_any_language_stay_word_for_word_through_fifteen_compactions() {
    let languages = include_str!("../../testdata/retention/other-languages.json");
    let languages: BTreeMap<String, Language> = serde_json::from_str(languages).unwrap();
    for (name, language) in languages {
        for first in [0, 20] {
            let text = after_fifteen_compactions(&language, first);
            let lost: Vec<_> = language.rules.iter().filter(|rule| !text.contains(*rule)).collect();
            assert!(lost.is_empty(), "{name}, from turn {first}: {lost:?}");
        }
    }
}

/// The thread after fifteen compactions in a small window, with a rule in each third turn from the
/// `first` on.
fn after_fifteen_compactions(language: &Language, first: usize) -> String {
    const TURNS: usize = 2_000;
    let answer = language.answer.repeat(20);
    let model = ScriptedModel::new(vec![answer.as_str(); 2 * TURNS]);
    let agent = ModelAgent::new(Arc::new(model)).with_window(ContextWindow::new(4_000));
    let mut session = Session::builder(agent).build().unwrap();
    let mut rules = language.rules.iter();
    for turn in 0..TURNS {
        let rule = (turn >= first && turn % 3 == 0).then(|| rules.next()).flatten();
        let typed =
            rule.cloned().unwrap_or_else(|| language.request.replace("{}", &turn.to_string()));
        block_on(async { session.send(typed).await }).unwrap();
        if rules.len() == 0 && session.log().standing().count() >= 15 {
            let blocks = session.messages().iter().flat_map(|message| &message.content);
            return blocks.map(text).collect::<Vec<_>>().join("\n");
        }
    }
    panic!("there were no fifteen compactions in {TURNS} turns");
}

fn text(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Summary(summary) => summary.text.to_string(),
        other => other.as_text().map(ToString::to_string).unwrap_or_default(),
    }
}
