//! Why the proxy did not do something, as one line for standard error.
//!
//! A line names kinds, sizes and numbers. It holds no text of a thread and no text of a provider,
//! because errors of decoders and of providers quote both.

use std::fmt::{self, Debug, Write};

use serde_json::error::Category;
use threadfold::{
    drive::{CompactionError, CompactionErrorKind},
    message::ModelErrorKind,
    store::StoreError,
    strategy::StrategyError,
    wire::WireError,
};

/// The maximum number of names in a path to a field.
const PATH_NAMES: usize = 3;

/// A reason without any text of a thread or a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trouble(String);

impl Trouble {
    /// Returns a reason that the proxy itself states.
    pub(super) fn new(words: impl Into<String>) -> Self {
        Self(words.into())
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&'static str> for Trouble {
    fn from(words: &'static str) -> Self {
        Self::new(words)
    }
}

impl From<serde_json::Error> for Trouble {
    fn from(error: serde_json::Error) -> Self {
        let what = match error.classify() {
            Category::Data => "a field has another type than expected, or stands twice",
            Category::Syntax | Category::Eof | Category::Io => "the body is not JSON",
        };
        Self(format!("{what}, at line {} column {}", error.line(), error.column()))
    }
}

impl From<WireError> for Trouble {
    fn from(error: WireError) -> Self {
        Self(match error {
            WireError::NotJson { reason } if reason.contains("utf-8") => {
                let at = reason.rsplit(' ').next().and_then(|at| at.parse::<usize>().ok());
                format!("the body is not UTF-8, from byte {}", at.unwrap_or_default())
            }
            WireError::NotJson { reason } => {
                let digits = |text: &str| text.parse::<usize>().ok();
                let at = reason.rsplit_once(" at line ").and_then(|(_, at)| {
                    let (line, column) = at.split_once(" column ")?;
                    Some(format!(", at line {} column {}", digits(line)?, digits(column)?))
                });
                format!("the body is not JSON{}", at.unwrap_or_default())
            }
            WireError::Shape { path, expected, .. } => {
                let names: Vec<&str> = path.split('.').take(PATH_NAMES).collect();
                format!("{}: expected {expected}", names.join("."))
            }
            WireError::EventTooLarge { limit } => format!("an event has more than {limit} bytes"),
            // They state numbers alone.
            WireError::TooLarge { .. }
            | WireError::TooManyMessages { .. }
            | WireError::TooDeep { .. } => error.to_string(),
            other @ (WireError::UnknownDialect { .. } | _) => {
                format!("the body is not read ({})", variant(&other))
            }
        })
    }
}

impl From<CompactionError> for Trouble {
    fn from(error: CompactionError) -> Self {
        match &error.kind {
            CompactionErrorKind::Strategy(error) => Self(strategy(error)),
            CompactionErrorKind::Store(error) => match error.downcast_ref::<StoreError>() {
                Some(error) => Self::from(error),
                None => Self::new("the store failed"),
            },
            CompactionErrorKind::Facts(_)
            | CompactionErrorKind::Stale(_)
            | CompactionErrorKind::Log(_)
            | CompactionErrorKind::Unexpected(_)
            | _ => Self(variant(&error.kind)),
        }
    }
}

impl From<&StoreError> for Trouble {
    fn from(error: &StoreError) -> Self {
        Self(match error {
            // They state ids, numbers, files and the system's own words.
            StoreError::Conflict { .. }
            | StoreError::Deleted { .. }
            | StoreError::OtherLog { .. }
            | StoreError::Link { .. }
            | StoreError::TooLong { .. }
            | StoreError::OutOfOrder { .. }
            | StoreError::Medium { .. } => error.to_string(),
            StoreError::Held { .. }
            | StoreError::LeaseLost { .. }
            | StoreError::OtherThread { .. }
            | StoreError::Unreadable { .. }
            | _ => format!("the log is not read or written ({})", variant(error)),
        })
    }
}

impl From<tokio::task::JoinError> for Trouble {
    fn from(error: tokio::task::JoinError) -> Self {
        Self::new(if error.is_panic() { "the proxy panicked" } else { "the proxy stops" })
    }
}

/// The kind of a provider's or a summarizer's error, with its numbers.
pub(super) fn kind(error: &ModelErrorKind) -> String {
    let ModelErrorKind::Overflow { limit, found, .. } = error else { return variant(error) };
    let number = |tokens: &Option<u64>| {
        tokens.map_or_else(|| "unknown".to_owned(), |tokens| tokens.to_string())
    };
    format!("too long: limit {}, found {}", number(limit), number(found))
}

fn strategy(error: &StrategyError) -> String {
    if let StrategyError::NoRung { rungs } = error {
        let failed = rungs.iter().filter_map(|rung| Some((&rung.strategy, rung.failure.as_ref()?)));
        return all_failed(failed.map(|(name, error)| (name.as_str(), strategy(error))).collect());
    }
    if let StrategyError::Model(error) = error {
        return format!("the summarizer failed ({})", kind(&error.kind));
    }
    if let StrategyError::TooLong { tokens, window } = error {
        return format!("the summary request needs {tokens} tokens; the window has {window}");
    }
    variant(error)
}

/// The errors of strategies by their names; an error of all is said once.
fn all_failed(failed: Vec<(&str, String)>) -> String {
    let errors = match failed.split_first() {
        Some(((_, first), rest)) if rest.iter().all(|(_, error)| error == first) => first.clone(),
        _ => {
            let named = failed.into_iter().map(|(name, error)| format!("{name}: {error}"));
            named.collect::<Vec<_>>().join("; ")
        }
    };
    format!("every strategy failed ({errors})")
}

/// The name of the variant of an enum, in words. Its fields may hold texts, so they are not written.
fn variant(value: &impl Debug) -> String {
    /// Takes a name up to its end.
    struct Words(String);

    impl Write for Words {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            for char in text.chars() {
                if !char.is_ascii_alphanumeric() {
                    return Err(fmt::Error);
                }
                if char.is_ascii_uppercase() && !self.0.is_empty() {
                    self.0.push(' ');
                }
                self.0.push(char.to_ascii_lowercase());
            }
            Ok(())
        }
    }

    let mut words = Words(String::new());
    // The error is the end of the name.
    let _ = write!(words, "{value:?}");
    words.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use threadfold::message::ModelError;

    #[test]
    fn why_a_log_is_not_stored_is_said() {
        let full = std::io::Error::other("No space left on device");
        let full = StoreError::medium("threads.db", full);
        let error = CompactionError::from(full);
        let words = Trouble::from(error).to_string();
        assert!(words.contains("threads.db") && words.contains("No space left"), "{words}");
    }

    #[test]
    fn the_errors_of_strategies_are_words_and_said_once_if_they_are_the_same() {
        let nothing = strategy(&StrategyError::NothingToCompact { reason: "secret".into() });
        let same = all_failed(vec![("summarize", nothing.clone()), ("digest", nothing.clone())]);
        assert_eq!(same, "every strategy failed (nothing to compact)");
        let needs = strategy(&StrategyError::NeedsModel);
        assert_eq!(
            all_failed(vec![("summarize", needs), ("digest", nothing)]),
            "every strategy failed (summarize: needs model; digest: nothing to compact)"
        );
    }

    #[test]
    fn no_text_of_a_thread_or_a_provider_is_in_a_line() {
        let model = ModelError::new(ModelErrorKind::Other, "You wrote: secret");
        let found = "secret".to_owned();
        let path = "tools[0].input_schema.properties.secret".to_owned();
        let reason = "unknown word secret at line 1 column 7".to_owned();
        let lines = [
            Trouble::from(WireError::Shape { path, expected: "text", found }),
            Trouble::from(WireError::NotJson { reason }),
            Trouble::from(CompactionError::new(StrategyError::Model(Box::new(model)))),
            Trouble::from(serde_json::from_str::<u64>("\"secret\"").unwrap_err()),
        ]
        .map(|trouble| trouble.to_string());
        assert_eq!(
            lines,
            [
                "tools[0].input_schema.properties: expected text",
                "the body is not JSON, at line 1 column 7",
                "the summarizer failed (other)",
                "a field has another type than expected, or stands twice, at line 1 column 8",
            ]
        );
        let bytes = vec![b'"', 0xff, b'"'];
        let reason = String::from_utf8(bytes).unwrap_err().to_string();
        let not_text = WireError::NotJson { reason };
        assert_eq!(Trouble::from(not_text).to_string(), "the body is not UTF-8, from byte 1");
    }
}
