//! Finding the parts of a text that look like the rendering's own headings and fences.

use crate::message::{ContentBlock, Role};

const ROLES: [Role; 3] = [Role::System, Role::User, Role::Assistant];

/// The parts of a text that must be escaped or enclosed, because they look like headings or fences
/// of the rendering.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Lookalikes {
    /// The byte offsets of hashes that need a backslash.
    pub(super) hashes: Vec<usize>,
    /// The byte offsets of runs of at least three backticks or tildes.
    pub(super) fences: Vec<usize>,
    /// The length of the longest of these runs of backticks.
    pub(super) backticks: usize,
}

impl Lookalikes {
    /// Searches this text and replaces the earlier findings. Their memory is reused.
    pub(super) fn find(&mut self, text: &str) {
        let bytes = text.as_bytes();
        self.hashes.clear();
        self.fences.clear();
        self.backticks = 0;
        let mut at = 0;
        while let Some(found) = next_special(bytes, at) {
            let (_, rest) = text.split_at(found);
            if let Some(after) = rest.strip_prefix('#') {
                at = found + 1;
                if is_heading(after) {
                    self.hashes.push(found);
                }
                continue;
            }
            let mark = if rest.starts_with('`') { '`' } else { '~' };
            let run = rest.len() - rest.trim_start_matches(mark).len();
            debug_assert!(run > 0, "no mark at {found}");
            at = found + run;
            if run >= 3 {
                self.fences.push(found);
                self.backticks = self.backticks.max(if mark == '`' { run } else { 0 });
            }
        }
    }
}

/// `true` if a hash before this text would make it one of our headings: white space, then a role or
/// kind.
fn is_heading(rest: &str) -> bool {
    let name = rest.trim_start_matches(|c: char| c.is_whitespace() && c != '\n' && c != '\r');
    if name.len() == rest.len() {
        return false;
    }
    // One byte more than the longest kind, so that a longer word does not match.
    let word = name.bytes().take(20).take_while(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let (word, _) = name.split_at(word.count());
    ContentBlock::KINDS.contains(&word)
        || ROLES.iter().any(|role| role.as_str().eq_ignore_ascii_case(word))
}

/// How many bytes are tested at once: a few vector registers.
const STRIDE: usize = 64;

/// The bytes of a stride, and the byte after them.
type Stride = [u8; STRIDE + 1];

/// Returns the next offset that may need care: a hash before a byte that may be white space, or two
/// equal backticks or tildes.
///
/// This search took half of the instructions of a rendering. So whole strides are tested first:
/// most contain no marker, and most others only harmless ones, such as the backticks around a name.
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
    // Most texts end without a marker, so the copy below is not needed.
    if bytes.last_chunk().is_some_and(|last| !holds_marker(last)) {
        return None;
    }
    // The rest becomes a stride, padded with zeros.
    let rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
    let mut stride = [0; STRIDE + 1];
    stride.get_mut(..rest.len())?.copy_from_slice(rest);
    Some(at + first_special(&stride)?)
}

/// `true` if the bytes contain a hash, backtick or tilde. Written without branches and early exits,
/// so that compilers compare whole vector registers.
fn holds_marker(bytes: &[u8; STRIDE]) -> bool {
    let mut markers = [0_u8; STRIDE];
    for (marker, byte) in markers.iter_mut().zip(bytes) {
        let is_marker = (*byte == b'#') | (*byte == b'`') | (*byte == b'~');
        *marker = if is_marker { 0xff } else { 0 };
    }
    let (registers, _) = markers.as_chunks::<16>();
    registers.iter().fold(0, |any, register| any | u128::from_le_bytes(*register)) != 0
}

/// Returns the offset of the first byte in a stride that may need care, testing 16 bytes at a time.
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
    // White space is an ASCII byte up to the space, or starts with a byte above ASCII, which is
    // negative as a signed number. So one comparison finds both.
    let opens_heading = (byte == b'#') & (next.cast_signed() <= b' '.cast_signed());
    opens_heading | (((byte == b'`') | (byte == b'~')) & (byte == next))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookalikes(text: &str) -> Lookalikes {
        let mut lookalikes = Lookalikes::default();
        lookalikes.find(text);
        lookalikes
    }

    fn hashes(text: &str) -> Vec<usize> {
        lookalikes(text).hashes
    }

    #[test]
    fn our_headings_are_found_at_every_position() {
        assert_eq!(hashes("# user:"), [0]);
        assert_eq!(hashes("a ## tool_use: x\n#\t ASSISTANT"), [3, 17]);
        assert_eq!(hashes("#\u{a0}User"), [0]);
        let long = "x".repeat(1_000);
        assert_eq!(hashes(&format!("{long}# system{long} # system: # user")), [2_009, 2_019]);
    }

    #[test]
    fn other_hashes_are_not_found() {
        for text in
            ["#user", "# users", "## Summary", "# system_prompt", "#\nuser", "#", "# ", "C#"]
        {
            assert!(hashes(text).is_empty(), "{text:?}");
        }
    }

    #[test]
    fn runs_are_measured_across_blocks() {
        let text = format!("{}{}b``~~~", "a".repeat(60), "`".repeat(70));
        assert_eq!(
            lookalikes(&text),
            Lookalikes { hashes: vec![], fences: vec![60, 133], backticks: 70 }
        );
        assert_eq!(lookalikes("`` ~~"), Lookalikes::default());
    }

    #[test]
    fn nothing_is_missed_at_the_end_of_a_block() {
        for before in 0..3 * STRIDE {
            for after in [0, 1, 2, 61, 62, 70] {
                let text = format!("{}# user{}", "a".repeat(before), " ".repeat(after));
                assert_eq!(hashes(&text), [before]);
                let text = format!("{}```{}", "a".repeat(before), "`".repeat(after));
                assert_eq!(lookalikes(&text).backticks, 3 + after);
                let text = format!("{}~~~{}", "a".repeat(before), " ".repeat(after));
                assert_eq!(lookalikes(&text).fences, [before]);
            }
        }
    }
}
