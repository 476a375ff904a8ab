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
    /// The bytes by which these were smaller, in all.
    pub(crate) bytes_less: u64,
    /// Refusals for the length that reached the agent.
    pub(crate) refused: u64,
    /// Requests that the provider refused for their length and answered after a compaction.
    pub(crate) hidden: u64,
    /// Last requests of quiet threads that were sent again to keep the provider's cache.
    pub(crate) kept_alive: u64,
}

impl Counts {
    /// A request of `own` bytes was answered after it was sent with `sent` bytes.
    pub(super) fn answered(&mut self, own: usize, sent: usize, after_refusal: bool) {
        if sent < own {
            self.smaller += 1;
            self.bytes_less += (own - sent) as u64;
        }
        self.hidden += u64::from(after_refusal);
    }

    /// What was done, in one line; `None` if no request came through.
    pub(crate) fn words(self) -> Option<String> {
        let Self { requests, compactions, smaller, bytes_less, refused, hidden, kept_alive } = self;
        if requests == 0 {
            return None;
        }
        let mut line = counted(requests, "request");
        line += &match compactions {
            0 => ", no compaction was needed".to_owned(),
            _ => format!(", {}", counted(compactions, "compaction")),
        };
        if smaller > 0 {
            // Three bytes a token, as the proxy estimates.
            let tokens = thousands(bytes_less / 3);
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
        let counts = Counts { compactions: 1, smaller: 41, bytes_less: 30_000, ..counts };
        let line =
            "62 requests, 1 compaction, 41 requests sent smaller by about 10,000 tokens in all";
        assert_eq!(words(counts), line);
        let counts = Counts { hidden: 1, refused: 2, ..counts };
        let more = format!("{line}, 1 refusal hidden, 2 refusals for the length passed on");
        assert_eq!(words(counts), more);
        assert_eq!(Counts::default().words(), None);
    }
}
