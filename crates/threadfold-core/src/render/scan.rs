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
                at = found + run;
                if run >= 3 {
                    self.fences.push(found);
                    self.backticks = self.backticks.max(if *first == b'`' { run } else { 0 });
                }
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

/// How many bytes are looked at at once: some vector registers.
const STRIDE: usize = 64;

/// The bytes of a stride, and the one behind.
type Stride = [u8; STRIDE + 1];

/// Returns the next place that may need care: a hash before what may be white space, or two
/// backticks or tildes.
///
/// Half of the instructions of a rendering were spent on the way to the next such place. Most
/// strides hold no marker, and of those that do most hold one that needs no care, such as the
/// backticks around a name.
fn next_special(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(stride) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        if stride.first_chunk().is_some_and(holds_marker)
            && let Some(found) = first_special(stride)
        {
            return Some(at + found);
        }
        at += STRIDE;
    }
    // Most texts end without a marker, and then nothing has to be copied.
    if bytes.last_chunk().is_some_and(|last| !holds_marker(last)) {
        return None;
    }
    // What is left is a stride too, with nothing behind it.
    let rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
    let mut stride = [0; STRIDE + 1];
    stride.get_mut(..rest.len())?.copy_from_slice(rest);
    Some(at + first_special(&stride)?)
}

/// There is no early exit and no branch, and what was found stands side by side: written so, the
/// compiler compares whole registers wherever it puts this.
fn holds_marker(bytes: &[u8; STRIDE]) -> bool {
    let mut markers = [0_u8; STRIDE];
    for (marker, byte) in markers.iter_mut().zip(bytes) {
        let is_marker = (*byte == b'#') | (*byte == b'`') | (*byte == b'~');
        *marker = if is_marker { 0xff } else { 0 };
    }
    let (registers, _) = markers.as_chunks::<16>();
    registers.iter().fold(0, |any, register| any | u128::from_le_bytes(*register)) != 0
}

/// Returns where in a stride the first special place is, a register at a time.
fn first_special(stride: &Stride) -> Option<usize> {
    let (bytes, next) = (stride.first_chunk::<STRIDE>()?, stride.last_chunk::<STRIDE>()?);
    let mut special = [0_u8; STRIDE];
    for ((special, byte), next) in special.iter_mut().zip(bytes).zip(next) {
        *special = if is_special(*byte, *next) { 0xff } else { 0 };
    }
    let (registers, _) = special.as_chunks::<16>();
    let registers = registers.iter().map(|register| u128::from_le_bytes(*register));
    let (index, register) = registers.enumerate().find(|(_, register)| *register != 0)?;
    Some(index * 16 + register.trailing_zeros() as usize / 8)
}

fn is_special(byte: u8, next: u8) -> bool {
    // White space is at most a space or, in other alphabets, not ASCII: negative as a signed byte.
    let opens_heading = (byte == b'#') & (next.cast_signed() <= b' '.cast_signed());
    opens_heading | (((byte == b'`') | (byte == b'~')) & (byte == next))
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
            for after in [0, 1, 2, 61, 62, 70] {
                let text = format!("{}# user{}", "a".repeat(before), " ".repeat(after));
                assert_eq!(hashes(&text), [before]);
                let text = format!("{}```{}", "a".repeat(before), "`".repeat(after));
                assert_eq!(scan(&text).backticks, 3 + after);
                let text = format!("{}~~~{}", "a".repeat(before), " ".repeat(after));
                assert_eq!(scan(&text).fences, [before]);
            }
        }
    }
}
