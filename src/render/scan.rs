//! One look at a text before it is copied: what in it could pass for the rendering's own marks.

use crate::message::Role;

/// The names of the kinds of blocks, by which their headings begin.
const KINDS: [&str; 14] = [
    "text",
    "image",
    "document",
    "thinking",
    "redacted_thinking",
    "tool_use",
    "tool_result",
    "server_tool_use",
    "server_tool_result",
    "system_reminder",
    "context_update",
    "checkpoint",
    "summary",
    "opaque",
];

const ROLES: [Role; 3] = [Role::System, Role::User, Role::Assistant];

/// What a text holds that needs care.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Scan {
    /// The offsets of hashes that need a backslash.
    pub(super) hashes: Vec<usize>,
    /// The longest run of backticks.
    pub(super) backticks: usize,
    /// The longest run of tildes.
    pub(super) tildes: usize,
}

/// Looks through a text once. Allocates only where a hash needs a backslash.
pub(super) fn scan(text: &str) -> Scan {
    let bytes = text.as_bytes();
    let mut scan = Scan::default();
    let mut at = 0;
    while let Some((found, byte)) = next_special(bytes, at) {
        at = found + 1;
        match byte {
            b'#' => {
                scan.hashes.extend(is_mark(text.get(at..).unwrap_or_default()).then_some(found))
            }
            _ => {
                let rest = bytes.get(found..).unwrap_or_default();
                let run = rest.iter().take_while(|next| **next == byte).count();
                let longest = if byte == b'`' { &mut scan.backticks } else { &mut scan.tildes };
                *longest = run.max(*longest);
                at = found + run;
            }
        }
    }
    scan
}

/// Whether what follows a hash makes a heading of ours of it: white space, and a word of ours.
fn is_mark(rest: &str) -> bool {
    let is_gap = |c: char| c.is_whitespace() && c != '\n' && c != '\r';
    let named = rest.trim_start_matches(is_gap);
    if named.len() == rest.len() {
        return false;
    }
    // One byte more than the longest of our words, so that a longer word is not taken for one.
    let word = named.bytes().take(20).take_while(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let word = named.get(..word.count()).unwrap_or_default();
    KINDS.contains(&word) || ROLES.iter().any(|role| role.as_str().eq_ignore_ascii_case(word))
}

/// How many bytes are looked at together. Few enough to be looked at again one by one, and a
/// multiple of every vector register.
const BLOCK: usize = 64;

/// Returns the next hash, backtick or tilde from an offset on.
fn next_special(bytes: &[u8], from: usize) -> Option<(usize, u8)> {
    let is_special = |byte: &u8| matches!(byte, b'#' | b'`' | b'~');
    let mut at = from;
    for block in bytes.get(from..)?.chunks(BLOCK) {
        // Without an early exit the compiler compares whole registers.
        if block.iter().fold(false, |any, byte| any | is_special(byte)) {
            let found = block.iter().enumerate().find(|(_, byte)| is_special(byte));
            return found.map(|(offset, byte)| (at + offset, *byte));
        }
        at += block.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(text: &str) -> Vec<usize> {
        scan(text).hashes
    }

    #[test]
    fn headings_of_ours_are_found_wherever_they_stand() {
        assert_eq!(hashes("# user:"), [0]);
        assert_eq!(hashes("a ## tool_use: x\n#\t ASSISTANT"), [3, 17]);
        assert_eq!(hashes("#\u{a0}User"), [0]);
        let long = "x".repeat(1_000);
        assert_eq!(hashes(&format!("{long}# system{long} # system: # user")), [2_009, 2_019]);
    }

    #[test]
    fn other_hashes_are_left_alone() {
        for text in
            ["#user", "# users", "## Summary", "# system_prompt", "#\nuser", "#", "# ", "C#"]
        {
            assert!(hashes(text).is_empty(), "{text:?}");
        }
    }

    #[test]
    fn runs_are_measured_across_blocks() {
        let text = format!("{}{}b``~~~", "a".repeat(60), "`".repeat(70));
        assert_eq!(scan(&text), Scan { hashes: vec![], backticks: 70, tildes: 3 });
    }
}
