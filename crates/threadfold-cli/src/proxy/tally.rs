//! What a proxy did since its start, as numbers.

use serde::{Deserialize, Serialize};
use threadfold_terminal::{counted, thousands};

/// What a proxy did since its start. The counters only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    /// Requests for an answer of a model.
    pub(crate) requests: u64,
    /// Compactions of threads.
    pub(crate) compactions: u64,
    /// Answered requests whose thread was sent smaller.
    pub(crate) smaller: u64,
    /// The tokens that these did not send, in all: the sum of what was saved of each thread.
    pub(crate) tokens_less: u64,
    /// Refusals for the length that reached the agent.
    pub(crate) refused: u64,
    /// Requests that the provider refused for their length and answered after a compaction.
    pub(crate) hidden: u64,
    /// Last requests of quiet threads that were sent again to keep the provider's cache.
    pub(crate) kept_alive: u64,
}

impl Counts {
    /// A request was answered after it was sent without so many of its tokens.
    pub(super) fn answered(&mut self, saved: u64, after_refusal: bool) {
        self.smaller += u64::from(saved > 0);
        self.tokens_less = self.tokens_less.saturating_add(saved);
        self.hidden += u64::from(after_refusal);
    }

    /// What was done, in one line; `None` if no request came through.
    pub(crate) fn words(self) -> Option<String> {
        let Self { requests, compactions, smaller, tokens_less, refused, hidden, kept_alive } =
            self;
        if requests == 0 {
            return None;
        }
        let mut line = counted(requests, "request");
        line += &match compactions {
            0 => ", no compaction was needed".to_owned(),
            _ => format!(", {}", counted(compactions, "compaction")),
        };
        if smaller > 0 {
            let tokens = thousands(tokens_less);
            line += &format!(
                ", {} sent smaller by about {tokens} tokens in all",
                counted(smaller, "request")
            );
        }
        if kept_alive > 0 {
            line += &format!(", {}", counted(kept_alive, "keep-alive"));
        }
        if hidden > 0 {
            line += &format!(", {} hidden", counted(hidden, "refusal"));
        }
        if refused > 0 {
            line += &format!(", {} for the length passed on", counted(refused, "refusal"));
        }
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_was_done() {
        let words = |counts: Counts| counts.words().unwrap();
        let counts = Counts { requests: 62, ..Counts::default() };
        assert_eq!(words(counts), "62 requests, no compaction was needed");
        let counts = Counts { compactions: 1, smaller: 41, tokens_less: 10_000, ..counts };
        let line =
            "62 requests, 1 compaction, 41 requests sent smaller by about 10,000 tokens in all";
        assert_eq!(words(counts), line);
        let counts = Counts { hidden: 1, refused: 2, ..counts };
        let more = format!("{line}, 1 refusal hidden, 2 refusals for the length passed on");
        assert_eq!(words(counts), more);
        assert_eq!(Counts::default().words(), None);
    }
}
