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
    /// The offsets of runs of three and more backticks or tildes.
    pub(super) fences: Vec<usize>,
    /// The longest of the runs of backticks among them.
    pub(super) backticks: usize,
}

impl Scan {
    /// Looks through a text once, and forgets the one before. Allocates only where it finds more
    /// than ever before.
    pub(super) fn read(&mut self, text: &str) {
        let bytes = text.as_bytes();
        self.hashes.clear();
        self.fences.clear();
        self.backticks = 0;
        let mut at = 0;
        while let Some(found) = next_special(bytes, at) {
            let rest = bytes.get(found..).unwrap_or_default();
            let Some(first) = rest.first() else { return };
            at = found + 1;
            if *first != b'#' {
                let run = rest.iter().take_while(|next| *next == first).count();
                self.fences.push(found);
                self.backticks = self.backticks.max(if *first == b'`' { run } else { 0 });
                at = found + run;
            } else if is_mark(text.get(at..).unwrap_or_default()) {
                self.hashes.push(found);
            }
        }
    }
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

/// Returns the next place that may need care: a hash before what may be white space, or three
/// backticks or tildes.
fn next_special(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let rest = bytes.get(at..)?;
        let found = at + next_marker(rest)?;
        at = found + 1;
        match bytes.get(found..)? {
            // White space is at most a space or, in other alphabets, not ASCII.
            [b'#', after, ..] if *after <= b' ' || !after.is_ascii() => return Some(found),
            [b'`', b'`', b'`', ..] | [b'~', b'~', b'~', ..] => return Some(found),
            _ => {}
        }
    }
}

/// How many bytes are passed over at once, and among how many the marker is then looked for:
/// multiples of a vector register.
const STRIDE: usize = 64;
const STEP: usize = 16;

/// Returns the offset of the first byte by which a mark can begin.
fn next_marker(bytes: &[u8]) -> Option<usize> {
    let (strides, _) = bytes.as_chunks::<STRIDE>();
    let passed = strides.iter().take_while(|stride| !holds_marker(stride)).count() * STRIDE;
    let (steps, _) = bytes.get(passed..)?.as_chunks::<STEP>();
    let passed = passed + steps.iter().take_while(|step| !holds_marker(step)).count() * STEP;
    let found = bytes.get(passed..)?.iter().position(|byte| is_marker(*byte))?;
    Some(passed + found)
}

/// There is no early exit and no branch, so that the compiler compares whole registers.
fn holds_marker<const N: usize>(block: &[u8; N]) -> bool {
    block.map(|byte| u8::from(is_marker(byte))).iter().fold(0, |any, marker| any | marker) != 0
}

fn is_marker(byte: u8) -> bool {
    (byte == b'#') | (byte == b'`') | (byte == b'~')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(text: &str) -> Scan {
        let mut scan = Scan::default();
        scan.read(text);
        scan
    }

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
        assert_eq!(scan(&text), Scan { hashes: vec![], fences: vec![60, 133], backticks: 70 });
        assert_eq!(scan("`` ~~"), Scan::default());
    }

    #[test]
    fn nothing_is_missed_wherever_blocks_end() {
        for before in 0..3 * STRIDE {
            for after in [0, 1, 2, 70] {
                let text = format!("{}# user{}", "a".repeat(before), " ".repeat(after));
                assert_eq!(hashes(&text), [before]);
                let text = format!("{}```{}", "a".repeat(before), "`".repeat(after));
                assert_eq!(scan(&text).backticks, 3 + after);
            }
        }
    }
}
