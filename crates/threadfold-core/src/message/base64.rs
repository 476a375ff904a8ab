//! Base64 as in RFC 4648.

/// Returns the bytes in the standard alphabet, with padding.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bytes = group.iter().copied().chain(std::iter::repeat(0)).take(3);
        let bits = bytes.fold(0, |bits: usize, byte| bits << 8 | usize::from(byte));
        for letter in 0..4 {
            let known = LETTERS.get(bits >> (18 - 6 * letter) & 63);
            let known = known.filter(|_| letter <= group.len());
            text.push(known.map_or('=', |letter| char::from(*letter)));
        }
    }
    text
}

/// Returns the bytes of a text in either alphabet; `None` if it has another character.
#[must_use]
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let letters = text.trim_end_matches('=').as_bytes();
    let bytes = 0..letters.len() / 4 * 3 + (letters.len() % 4).saturating_sub(1);
    letters.iter().try_for_each(|letter| sextet(*letter).map(drop))?;
    bytes.map(|index| byte(letters, index)).collect()
}

/// Returns one byte of a text; `None` after the end, or at a character that is not Base64.
pub(super) fn byte(text: &[u8], index: usize) -> Option<u8> {
    // Four characters hold three bytes, so the bits of a byte are in two neighbouring characters.
    let first = (index / 3).checked_mul(4)?.checked_add(index % 3)?;
    let (high, low) = (sextet(*text.get(first)?)?, sextet(*text.get(first + 1)?)?);
    Some(match index % 3 {
        0 => high << 2 | low >> 4,
        1 => high << 4 | low >> 2,
        _ => high << 6 | low,
    })
}

/// The value of a character, in either alphabet.
fn sextet(character: u8) -> Option<u8> {
    match character {
        b'A'..=b'Z' => Some(character - b'A'),
        b'a'..=b'z' => Some(character - b'a' + 26),
        b'0'..=b'9' => Some(character - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_as_in_rfc_4648() {
        let rows =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        for (text, encoded) in rows {
            assert_eq!(encode(text.as_bytes()), encoded);
            assert_eq!(decode(encoded).as_deref(), Some(text.as_bytes()));
        }
        assert_eq!(decode("Zm9?"), None);
    }
}
