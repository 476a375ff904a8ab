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

/// How many bytes are looked at together: a multiple of every vector register.
const BLOCK: usize = 64;

/// What a look at a block needs: each byte and the two behind it.
const REACH: usize = BLOCK + 2;

/// Returns the next place that may need care: a hash before something that may be white space, or
/// three backticks or tildes.
fn next_special(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(block) = block(bytes, at) {
        if has_special(block) {
            return Some(at + first_special(block));
        }
        at += BLOCK;
    }
    // The zeros that fill up the last bytes are not special, so nothing is found behind the end.
    let mut padded = [0; BLOCK + REACH];
    let rest = bytes.get(at..)?;
    padded.get_mut(..rest.len())?.copy_from_slice(rest);
    let first = [0, BLOCK].into_iter().find_map(|start| {
        let block = block(&padded, start)?;
        has_special(block).then(|| start + first_special(block))
    })?;
    (first < rest.len()).then_some(at + first)
}

fn block(bytes: &[u8], at: usize) -> Option<&[u8; REACH]> {
    bytes.get(at..)?.first_chunk()
}

/// Whether any place of a block is special. There is no early exit and no branch, so that the
/// compiler compares whole registers.
fn has_special(block: &[u8; REACH]) -> bool {
    triples(block).fold(0, |any, triple| any | u8::from(is_special(triple))) != 0
}

/// The first place of a block that is special. Again without a branch.
fn first_special(block: &[u8; REACH]) -> usize {
    const PLACES: [u8; BLOCK] = {
        let mut places = [0; BLOCK];
        let mut place = 0;
        while place < BLOCK {
            places[place] = place as u8;
            place += 1;
        }
        places
    };
    let places = triples(block).zip(PLACES);
    let first = places.fold(u8::MAX, |first, (triple, place)| {
        first.min(if is_special(triple) { place } else { u8::MAX })
    });
    usize::from(first)
}

fn triples(block: &[u8; REACH]) -> impl Iterator<Item = (u8, u8, u8)> {
    let [_, second @ ..] = block;
    let [_, third @ ..] = second;
    let triples = block.iter().zip(second).zip(third);
    triples.map(|((first, second), third)| (*first, *second, *third))
}

fn is_special((first, second, third): (u8, u8, u8)) -> bool {
    // White space is at most a space or, in other alphabets, not ASCII: negative, as it were.
    let is_heading = (first == b'#') & (second.cast_signed() <= b' '.cast_signed());
    let is_fence = (first == b'`') | (first == b'~');
    is_heading | (is_fence & (first == second) & (second == third))
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
        for before in 0..3 * BLOCK {
            for after in [0, 1, 2, 70] {
                let text = format!("{}# user{}", "a".repeat(before), " ".repeat(after));
                assert_eq!(hashes(&text), [before]);
                let text = format!("{}```{}", "a".repeat(before), "`".repeat(after));
                assert_eq!(scan(&text).backticks, 3 + after);
            }
        }
    }
}
