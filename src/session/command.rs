//! What a person types to have the thread compacted.

/// A message that is a command to the session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Command {
    /// `/compact`, and what the summary should attend to: compacts, and asks the model nothing.
    Compact {
        /// What stands behind the word.
        focus: Option<String>,
    },
    /// `@compact`, and a prompt: compacts, and goes on with the prompt.
    CompactAndSend {
        /// What stands behind the word.
        prompt: Option<String>,
    },
}

impl Command {
    /// Returns the command that a message is, if it is one. The word must stand alone or be
    /// followed by white space: `/compaction` is a message like any other.
    ///
    /// ```
    /// use threadfold::session::Command;
    ///
    /// let focus = Some("the parser".to_owned());
    /// assert_eq!(Command::parse("/compact the parser"), Some(Command::Compact { focus }));
    /// assert_eq!(Command::parse("/compaction is slow"), None);
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        // Every message comes by here, so what is no command is looked at no further than that.
        let text = text.trim_start();
        let behind = |word: &str| {
            let rest = text.strip_prefix(word)?;
            let alone = rest.is_empty() || rest.starts_with(char::is_whitespace);
            alone.then(|| Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty()))
        };
        match behind("/compact") {
            Some(focus) => Some(Self::Compact { focus }),
            None => behind("@compact").map(|prompt| Self::CompactAndSend { prompt }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_word_itself_is_a_command() {
        let compact =
            |focus: Option<&str>| Some(Command::Compact { focus: focus.map(str::to_owned) });
        let send = |prompt: Option<&str>| {
            Some(Command::CompactAndSend { prompt: prompt.map(str::to_owned) })
        };
        let rows = [
            ("/compact", compact(None)),
            (" /compact \n", compact(None)),
            ("/compact the tests", compact(Some("the tests"))),
            ("/compact\nthe\ttests ", compact(Some("the\ttests"))),
            ("@compact", send(None)),
            ("@compact go on", send(Some("go on"))),
            ("/compaction", None),
            ("/compact-now", None),
            ("/Compact", None),
            ("please /compact", None),
            ("@compacted", None),
            ("", None),
        ];
        for (text, command) in rows {
            assert_eq!(Command::parse(text), command, "{text:?}");
        }
    }
}
