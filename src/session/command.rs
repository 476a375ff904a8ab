//! The commands that a user types to compact the thread.

/// A user message that the session executes instead of sending it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// `/compact FOCUS`: compacts, and does not ask the agent.
    Compact {
        /// The text after the word: what the summary should concentrate on.
        focus: Option<String>,
    },
    /// `@compact PROMPT`: compacts, then sends the prompt.
    CompactAndSend {
        /// The text after the word: the message to send.
        prompt: Option<String>,
    },
}

impl Command {
    /// Returns the command in a message, or `None` for an ordinary message. The word must be
    /// alone or be followed by white space: `/compaction` is an ordinary message.
    pub(super) fn parse(text: &str) -> Option<Self> {
        // Every message passes here, so an ordinary one must cost only a comparison of its start.
        let text = text.trim_start();
        match argument(text, "/compact") {
            Some(focus) => Some(Self::Compact { focus }),
            None => argument(text, "@compact").map(|prompt| Self::CompactAndSend { prompt }),
        }
    }
}

/// The text after a command's word, if the message is that command.
fn argument(text: &str, word: &str) -> Option<Option<String>> {
    let rest = text.strip_prefix(word)?;
    let alone = rest.is_empty() || rest.starts_with(char::is_whitespace);
    alone.then(|| Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty()))
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
