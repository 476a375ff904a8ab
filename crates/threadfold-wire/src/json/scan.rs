//! Finding the positions of all values in a JSON text in one pass.
//!
//! Without a scan, reading an object one level deep would skip over its values, and reading each
//! value would pass over its text again: a text at the fifth level would be passed five times. The
//! scan passes it once and records the position of every value, so that a reader can step from one
//! to the next.
//!
//! `serde_json` finds the end of a raw value by reading it, and needs more than twice the
//! instructions for a whole body. The scan accepts what `serde_json` accepts, which a property
//! checks. If the records would take several times the size of the text, or the text has an error,
//! `serde_json` reads it instead.

use serde::de::IgnoredAny;
use threadfold_core::message::run_of_text;

/// A value or a key of a scanned text. Inner values directly follow it, in order; in an object each
/// key precedes its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// The byte range.
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// The number of nodes of the value, itself included.
    pub(crate) span: u32,
    /// Whether the text can be used unchanged: a string without escapes, or a value without white
    /// space between its tokens.
    pub(crate) is_plain: bool,
}

/// Returns the nodes of a JSON text: the value and all values in it.
///
/// `None` if it is not JSON. Also `None` if it is huge or has very many values for its length,
/// which no body of a provider has: their nodes would take much more memory than the text.
pub(crate) fn scan(text: &str) -> Option<Vec<Node>> {
    let nodes = Vec::with_capacity(text.len() / 64 + 16);
    Scan::<false> { most: text.len() / 3 + 64, nodes, ..Scan::new(text) }.run()
}

/// Returns the nodes of the two outermost levels of a JSON text: the value and its direct parts.
/// `None` if it is not JSON, or huge.
pub(crate) fn scan_outer(text: &str) -> Option<Vec<Node>> {
    Scan::<true>::new(text).run()
}

/// A scan in progress. It records all values, or only the two outermost levels.
struct Scan<'a, const OUTER: bool> {
    bytes: &'a [u8],
    at: usize,
    /// The number of stretches of white space so far.
    blanks: usize,
    nodes: Vec<Node>,
    /// The maximum number of nodes.
    most: usize,
    /// The arrays and objects that are not closed yet.
    open: Vec<Open>,
}

/// An array or object that is not closed yet.
struct Open {
    node: usize,
    is_object: bool,
    /// The number of stretches of white space before it.
    blanks: usize,
}

impl<'a, const OUTER: bool> Scan<'a, OUTER> {
    fn new(text: &'a str) -> Self {
        let (nodes, open) = (Vec::new(), Vec::new());
        Self { bytes: text.as_bytes(), at: 0, blanks: 0, nodes, most: usize::MAX, open }
    }

    fn run(mut self) -> Option<Vec<Node>> {
        u32::try_from(self.bytes.len()).ok()?;
        loop {
            self.skip_blank();
            if !self.value()? {
                continue;
            }
            // After a whole value.
            loop {
                self.skip_blank();
                let Some(open) = self.open.last() else {
                    return (self.at == self.bytes.len()).then_some(self.nodes);
                };
                let is_object = open.is_object;
                match (self.next()?, is_object) {
                    (b',', true) => {
                        self.skip_blank();
                        self.key()?;
                        break;
                    }
                    (b',', false) => break,
                    (b'}', true) | (b']', false) => self.close()?,
                    _ => return None,
                }
            }
        }
    }

    /// Passes a whole value, or the opening of an array or object; returns `false` if an inner
    /// value follows.
    fn value(&mut self) -> Option<bool> {
        let start = self.at;
        let is_plain = match self.next()? {
            b'"' => self.string()?,
            opening @ (b'{' | b'[') => return self.opened(start, opening == b'{'),
            _ => self.word(start)?,
        };
        self.note(start, is_plain)?;
        Some(true)
    }

    /// Passes an array or object after its opening bracket: an empty one to its end, otherwise up
    /// to its first value.
    fn opened(&mut self, start: usize, is_object: bool) -> Option<bool> {
        let open = Open { node: self.nodes.len(), is_object, blanks: self.blanks };
        self.note(start, true)?;
        self.open.push(open);
        self.skip_blank();
        if self.peek()? == if is_object { b'}' } else { b']' } {
            self.at += 1;
            self.close()?;
            return Some(true);
        }
        if is_object {
            self.key()?;
        }
        Some(false)
    }

    /// Closes the innermost array or object, after its closing bracket.
    fn close(&mut self) -> Option<()> {
        let open = self.open.pop()?;
        if OUTER && self.open.len() > 1 {
            return Some(());
        }
        let span = u32::try_from(self.nodes.len() - open.node).ok()?;
        let node = self.nodes.get_mut(open.node)?;
        node.end = u32::try_from(self.at).ok()?;
        node.span = span;
        node.is_plain = self.blanks == open.blanks;
        Some(())
    }

    /// Passes a key and its colon.
    fn key(&mut self) -> Option<()> {
        let start = self.at;
        if self.next()? != b'"' {
            return None;
        }
        let is_plain = self.string()?;
        self.note(start, is_plain)?;
        self.skip_blank();
        (self.next()? == b':').then_some(())
    }

    /// Passes a string after its opening quote, and returns whether it has no escapes.
    fn string(&mut self) -> Option<bool> {
        let mut is_plain = true;
        loop {
            self.at += run_of_text(self.bytes.get(self.at..)?);
            match self.next()? {
                b'"' => return Some(is_plain),
                b'\\' => {
                    is_plain = false;
                    match self.next()? {
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                        b'u' => {
                            let digits = self.bytes.get(self.at..self.at + 4)?;
                            if !digits.iter().all(u8::is_ascii_hexdigit) {
                                return None;
                            }
                            self.at += 4;
                        }
                        _ => return None,
                    }
                }
                // A control character.
                _ => return None,
            }
        }
    }

    /// Passes a number, `true`, `false` or `null` that begins at `start`. `serde_json` checks it,
    /// which costs little, because a body has few of them.
    fn word(&mut self, start: usize) -> Option<bool> {
        let rest = self.bytes.get(start..)?;
        let end = rest.iter().position(|byte| b",]} \n\r\t".contains(byte));
        let word = rest.get(..end.unwrap_or(rest.len()))?;
        self.at = start + word.len();
        serde_json::from_slice(word).ok().map(|IgnoredAny| true)
    }

    fn skip_blank(&mut self) {
        let start = self.at;
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
        self.blanks += usize::from(self.at > start);
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    /// Records the value that ends here.
    fn note(&mut self, start: usize, is_plain: bool) -> Option<()> {
        if OUTER && self.open.len() > 1 {
            return Some(());
        }
        let (start, end) = (u32::try_from(start).ok()?, u32::try_from(self.at).ok()?);
        self.nodes.push(Node { start, end, span: 1, is_plain });
        (self.nodes.len() <= self.most).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::*;

    fn nodes(text: &str) -> Vec<(&str, u32, bool)> {
        let said = |node: &Node| text.get(node.start as usize..node.end as usize).unwrap();
        let nodes = scan(text).unwrap();
        nodes.iter().map(|node| (said(node), node.span, node.is_plain)).collect()
    }

    #[test]
    fn every_value_is_noted_with_what_is_within() {
        let text = r#" {"a":[1,{}, -2.5e+3],"b\n":"\u00e9"} "#;
        let expected = [
            (r#"{"a":[1,{}, -2.5e+3],"b\n":"\u00e9"}"#, 8, false),
            (r#""a""#, 1, true),
            ("[1,{}, -2.5e+3]", 4, false),
            ("1", 1, true),
            ("{}", 1, true),
            ("-2.5e+3", 1, true),
            (r#""b\n""#, 1, false),
            (r#""\u00e9""#, 1, false),
        ];
        assert_eq!(nodes(text), expected);
    }

    #[test]
    fn the_outer_levels_alone_are_the_value_and_its_parts() {
        let text = r#" {"a":[1,{"x":[]}],"b":2} "#;
        let outer = scan_outer(text).unwrap();
        let texts: Vec<&str> =
            outer.iter().map(|node| &text[node.start as usize..node.end as usize]).collect();
        assert_eq!(texts, [text.trim(), r#""a""#, r#"[1,{"x":[]}]"#, r#""b""#, "2"]);
        assert_eq!(scan_outer("[[[1]"), None);
        assert_eq!(scan_outer(&"[".repeat(1 << 16)), None);
    }

    #[test]
    fn notes_never_take_much_more_room_than_the_text() {
        let shut = format!("{}{}", "[".repeat(1 << 16), "]".repeat(1 << 16));
        for text in [shut, format!("[{}0]", "0,".repeat(1 << 16))] {
            assert!(serde_json::from_str::<&RawValue>(&text).is_ok());
            assert_eq!(scan(&text), None);
        }
        let deep = format!("{}{}", "[ ".repeat(1 << 16), "  ]".repeat(1 << 16));
        assert_eq!(scan(&deep).map(|nodes| nodes.len()), Some(1 << 16));
    }

    proptest! {
        #[test]
        fn what_is_json_is_what_serde_json_takes_for_it(
            tokens in proptest::collection::vec(
                prop_oneof![
                    "[\\[\\]{},: \n\t]",
                    r#"("a":|"b"|"\\n"|"\\u12aF"|"\\ud800"|"\\x"|"\\u12"|"ü|true|false|null|nul|"\x01")"#,
                    r"-?(0|00|1|12|)(\.|\.5|)(e|E\+1|)",
                ],
                0..8,
            ),
            around in any::<bool>(),
        ) {
            let joined = tokens.concat();
            let text = if around { format!("[{joined}]") } else { joined };
            let is_json = serde_json::from_str::<&RawValue>(&text).is_ok();
            prop_assert_eq!(scan(&text).is_some(), is_json, "{}", text);
        }
    }
}
