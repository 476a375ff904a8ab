//! The run without a key: a small project with a mistake in it, and a model that answers from a
//! script.
//!
//! The files are real, in a temporary folder. The tools, the session and the compactions are real
//! too. Only the answers are scripted, and summaries are extracted from the thread by fixed rules.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process,
};

use serde_json::{Value, json};
use threadfold::{
    ContentBlock, Message, Role,
    message::ToolUse,
    testing::{Scripted, ScriptedModel},
};

/// The window of the scripted model, in tokens: small, so that the thread outgrows it.
pub(crate) const WINDOW: u64 = 4_500;

/// The lines of the user in the scripted run.
pub(crate) const LINES: [&str; 7] = [
    "2 - 3 - 4 gives 3 here, and it should be -5. Find out why and mend it. Never change the lexer.",
    "/context",
    "Add a test for it.",
    "/compact the parser",
    "/undo",
    "/context",
    "/quit",
];

/// The lines of the user if the store has the thread already.
pub(crate) const LINES_AGAIN: [&str; 3] = ["What did we do?", "/context", "/quit"];

const FILES: [(&str, &str); 6] = [
    ("README.md", include_str!("../sample/README.md")),
    ("src/eval.rs", include_str!("../sample/src/eval.rs")),
    ("src/lexer.rs", include_str!("../sample/src/lexer.rs")),
    ("src/main.rs", include_str!("../sample/src/main.rs")),
    ("src/parser.rs", include_str!("../sample/src/parser.rs")),
    ("tests/calc.rs", include_str!("../sample/tests/calc.rs")),
];

const MANIFEST: &str =
    "[package]\nname = \"calc\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n";

/// The function with the mistake.
const OLD_SUM: &str = "        let left = self.product()?;
        match self.operator(&[(Token::Plus, Operator::Add), (Token::Minus, Operator::Subtract)]) {
            None => Ok(left),
            Some(operator) => {
                let right = self.sum()?;
                Ok(Tree::Binary(Box::new(left), operator, Box::new(right)))
            }
        }
";

const NEW_SUM: &str = "        let mut left = self.product()?;
        let table = [(Token::Plus, Operator::Add), (Token::Minus, Operator::Subtract)];
        while let Some(operator) = self.operator(&table) {
            let right = self.product()?;
            left = Tree::Binary(Box::new(left), operator, Box::new(right));
        }
        Ok(left)
";

const OLD_TEST: &str = "#[test]\nfn quotients_are_taken_from_the_left() {\n";

const NEW_TEST: &str = "#[test]
fn differences_are_taken_from_the_left() {
    assert_eq!(calc(\"2 - 3 - 4\"), \"-5\");
    assert_eq!(calc(\"2 - (3 - 4)\"), \"3\");
}

#[test]
fn quotients_are_taken_from_the_left() {
";

/// A folder with the project, removed on drop.
#[derive(Debug)]
pub(crate) struct Project(PathBuf);

impl Project {
    pub(crate) fn new() -> io::Result<Self> {
        let project = Self(env::temp_dir().join(format!("threadfold-agent-{}", process::id())));
        for (path, text) in FILES.into_iter().chain([("Cargo.toml", MANIFEST)]) {
            let place = project.0.join(path);
            fs::create_dir_all(place.parent().unwrap_or(&project.0))?;
            fs::write(place, text)?;
        }
        Ok(project)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the changed files, with the removed and the new lines.
    pub(crate) fn changes(&self) -> io::Result<Vec<Change>> {
        let mut changes = Vec::new();
        for (path, before) in FILES {
            let after = fs::read_to_string(self.0.join(path))?;
            if after != before {
                changes.push(Change::of(path, before, &after));
            }
        }
        Ok(changes)
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The change of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) path: &'static str,
    pub(crate) gone: Vec<String>,
    pub(crate) new: Vec<String>,
}

impl Change {
    /// Returns the lines between the common beginning and the common end.
    fn of(path: &'static str, before: &str, after: &str) -> Self {
        let (before, after): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
        let same = |pair: &(&&str, &&str)| pair.0 == pair.1;
        let start = before.iter().zip(&after).take_while(same).count();
        let (before, after) = (before.get(start..), after.get(start..));
        let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
        let end = before.iter().rev().zip(after.iter().rev()).take_while(same).count();
        let lines = |side: &[&str]| {
            let kept = side.len() - end;
            side.iter().take(kept).map(|line| (*line).to_owned()).collect()
        };
        Self { path, gone: lines(before), new: lines(after) }
    }
}

/// The model of the whole run.
pub(crate) fn model() -> ScriptedModel {
    ScriptedModel::new([
        round("I look at what is there.", &[("search", json!({}))]),
        round(
            "A calculator in four files. I begin with what it promises.",
            &[("read", json!({"path": "README.md"})), ("read", json!({"path": "src/main.rs"}))],
        ),
        round(
            "Operators of equal strength are to be taken from the left. Is the minus read as one token?",
            &[("read", json!({"path": "src/lexer.rs"}))],
        ),
        round(
            "The tokens are right, and I leave the lexer alone. Next is the tree.",
            &[("read", json!({"path": "src/parser.rs"})), ("read", json!({"path": "src/eval.rs"}))],
        ),
        round(
            "Here it is: `sum` calls itself for its right side, so that 2 - 3 - 4 becomes \
             2 - (3 - 4). `product` has a loop, and `sum` needs the same.",
            &[("edit", json!({"path": "src/parser.rs", "old": OLD_SUM, "new": NEW_SUM}))],
        ),
        round("Does anything else count on the old tree?", &[("search", json!({"text": "sum()"}))]),
        Scripted::from(
            "Mended, in src/parser.rs: `sum` now takes its operators from the left with a loop, as \
             `product` does, so 2 - 3 - 4 is -5. The lexer is as it was. I ran nothing: I have no tool \
             for that.",
        ),
        round("I look at the tests that there are.", &[("read", json!({"path": "tests/calc.rs"}))]),
        round(
            "They cover quotients, and differences are missing.",
            &[("edit", json!({"path": "tests/calc.rs", "old": OLD_TEST, "new": NEW_TEST}))],
        ),
        Scripted::from(
            "tests/calc.rs has a test for it now: 2 - 3 - 4 is -5, and 2 - (3 - 4) stays 3. \
             `cargo test` runs it.",
        ),
    ])
}

/// The model of a run that resumes a stored thread.
pub(crate) fn model_again() -> ScriptedModel {
    ScriptedModel::new([
        "We mended `sum` in src/parser.rs, which took differences from the right, and added a test to \
         tests/calc.rs. The lexer was not to be changed, and was not.",
    ])
}

/// An answer that calls tools.
fn round(words: &str, calls: &[(&str, Value)]) -> Scripted {
    let mut content = vec![ContentBlock::text(words)];
    for (number, (name, input)) in calls.iter().enumerate() {
        let id = format!("call_{}_{number}", words.len());
        content.push(ToolUse::new(id, *name, input.clone()).into());
    }
    Message::new(Role::Assistant, content).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_edits_text_of_the_project() {
        let of = |path| FILES.iter().find(|(name, _)| *name == path).map(|(_, text)| *text);
        assert_eq!(of("src/parser.rs").map(|text| text.matches(OLD_SUM).count()), Some(1));
        assert_eq!(of("tests/calc.rs").map(|text| text.matches(OLD_TEST).count()), Some(1));
    }

    #[test]
    fn a_change_is_between_the_unchanged_lines() {
        let change = Change::of("a", "1\n2\n3\n4\n", "1\nx\ny\n4\n");
        assert_eq!(
            (change.gone, change.new),
            (vec!["2".into(), "3".into()], vec!["x".into(), "y".into()])
        );
        let change = Change::of("a", "1\n2\n", "1\n1\n2\n");
        assert_eq!((change.gone, change.new), (Vec::<String>::new(), vec!["1".into()]));
    }
}
