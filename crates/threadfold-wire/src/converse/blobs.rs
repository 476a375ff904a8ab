//! Joining pieces of Base64. Each piece of a stream is whole by itself, so its padding may stand in
//! the middle, where it means nothing.

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends a piece, so that the text encodes the bytes of both. Returns `None` and appends nothing
/// if the two must be encoded again and one is not Base64.
pub(super) fn append(so_far: &mut String, piece: &str) -> Option<()> {
    if !so_far.ends_with('=') {
        so_far.push_str(piece);
        return Some(());
    }
    // Complete groups of four characters stay; only the bytes of the last, incomplete group are
    // encoded again.
    let full = so_far.len().checked_sub(4)?;
    let mut bytes = decode(so_far.get(full..)?)?;
    bytes.extend(decode(piece)?);
    so_far.truncate(full);
    so_far.push_str(&encode(&bytes));
    Some(())
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let letters = text.trim_end_matches('=');
    let mut bytes = Vec::with_capacity(letters.len() / 4 * 3 + 2);
    let (mut bits, mut held) = (0_u32, 0_u32);
    for letter in letters.bytes() {
        let value = LETTERS.iter().position(|known| *known == letter)?;
        bits = (bits << 6) | u32::try_from(value).ok()?;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from((bits >> held) & 0xff).ok()?);
        }
    }
    Some(bytes)
}

fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let at = |index: usize| group.get(index).copied().map_or(0, u32::from);
        let bits = (at(0) << 16) | (at(1) << 8) | at(2);
        for letter in 0..4 {
            let value = usize::try_from((bits >> (18 - 6 * letter)) & 0x3f).unwrap_or_default();
            let known = LETTERS.get(value).filter(|_| letter <= group.len());
            text.push(known.map_or('=', |letter| char::from(*letter)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_stand_for_the_bytes_of_all() {
        let bytes: Vec<u8> = (0..=255).collect();
        for cut in 0..bytes.len() {
            let (one, two) = bytes.split_at(cut);
            let mut joined = encode(one);
            append(&mut joined, &encode(two)).unwrap();
            assert_eq!(joined, encode(&bytes));
            assert_eq!(decode(&joined).unwrap(), bytes);
        }
    }

    #[test]
    fn what_is_no_base64_is_refused_where_it_matters() {
        let mut joined = "AA==".to_owned();
        assert_eq!(append(&mut joined, "?"), None);
        assert_eq!(joined, "AA==");
        assert_eq!(append(&mut "=".to_owned(), "AA=="), None);
        assert_eq!(append(&mut "\u{e9}\u{e9}\u{e9}=".to_owned(), "AA=="), None);
    }
}
