//! The elements of an array of JSON that arrives in pieces: a stream of Gemini without `alt=sse`.

/// The maximum length of an element, in bytes.
const MAX_ELEMENT: usize = 16 * 1024 * 1024;

/// Divides an array into its elements, which are objects.
#[derive(Debug, Default)]
pub(super) struct Elements {
    bytes: Vec<u8>,
    /// The number of bytes that belong to elements that were returned.
    taken: usize,
    /// The number of bytes that were examined.
    seen: usize,
    /// Where the current element begins.
    start: usize,
    depth: usize,
    string: InString,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum InString {
    #[default]
    No,
    Yes,
    /// After a backslash.
    Escaped,
}

impl Elements {
    pub(super) fn push(&mut self, piece: &[u8]) {
        self.bytes.drain(..self.taken);
        self.seen -= self.taken;
        self.start = self.start.saturating_sub(self.taken);
        self.taken = 0;
        self.bytes.extend_from_slice(piece);
    }

    /// The next complete element.
    ///
    /// # Errors
    ///
    /// If an element is too long, or is no text.
    pub(super) fn next_element(&mut self) -> Result<Option<String>, ()> {
        while let Some(&byte) = self.bytes.get(self.seen) {
            self.seen += 1;
            self.string = match (self.string, byte) {
                (InString::Yes, b'\\') => InString::Escaped,
                (InString::Yes, b'"') => InString::No,
                (InString::Yes | InString::Escaped, _) => InString::Yes,
                (InString::No, b'"') => InString::Yes,
                (InString::No, _) => InString::No,
            };
            if self.string != InString::No {
                continue;
            }
            match byte {
                b'{' => {
                    if self.depth == 0 {
                        self.start = self.seen - 1;
                    }
                    self.depth += 1;
                }
                b'}' if self.depth == 1 => {
                    self.depth = 0;
                    self.taken = self.seen;
                    let element = self.bytes.get(self.start..self.seen).unwrap_or_default();
                    return String::from_utf8(element.to_vec()).map(Some).map_err(drop);
                }
                b'}' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        if self.bytes.len().saturating_sub(self.taken) > MAX_ELEMENT { Err(()) } else { Ok(None) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_however_the_array_is_cut() {
        let array = r#"[{"a":"}\"{"},
            {"b":{"c":[{}]}}
            ,{"d":"\\"}]"#;
        for len in 1..array.len() {
            let (mut elements, mut found) = (Elements::default(), Vec::new());
            for piece in array.as_bytes().chunks(len) {
                elements.push(piece);
                while let Some(element) = elements.next_element().unwrap() {
                    found.push(element);
                }
            }
            assert_eq!(found, [r#"{"a":"}\"{"}"#, r#"{"b":{"c":[{}]}}"#, r#"{"d":"\\"}"#], "{len}");
        }
    }
}
