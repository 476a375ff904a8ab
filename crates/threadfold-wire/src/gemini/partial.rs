//! A call whose arguments arrive in pieces, as Vertex AI streams them on request.
//!
//! The first piece has the name, the others have values with their paths, and the last one has no
//! `willContinue`:
//!
//! ```json
//! {"functionCall": {"name": "read", "willContinue": true}, "thoughtSignature": "c2ln"}
//! {"functionCall": {"partialArgs": [{"jsonPath": "$.path", "stringValue": "a."}], "willContinue": true}}
//! {"functionCall": {"partialArgs": [{"jsonPath": "$.path", "stringValue": "txt"}], "willContinue": true}}
//! {"functionCall": {}}
//! ```

use super::{marks::fields, part::Part};
use crate::kit::*;

/// A call that is being received.
#[derive(Debug)]
pub(super) struct Partial {
    /// The position of its part in the answer.
    pub(super) place: usize,
    /// The id under which it is reported.
    pub(super) id: Text,
    /// The part so far.
    pub(super) part: Growing,
}

impl Partial {
    /// Takes a piece, and returns whether more will follow.
    pub(super) fn add(&mut self, part: &Part<'_>) -> Result<bool, &'static str> {
        let mut inner = part.inner().ok_or("a call is no object")?;
        let continues = inner.take("willContinue").is_some_and(|raw| raw.get() == "true");
        let pieces = inner.take("partialArgs").and_then(Raw::items).unwrap_or_default();
        let whole = inner.take("args").and_then(Fields::of).unwrap_or_default();
        if !matches!(self.part, Growing::Nothing) {
            // Ignore a later id: the call was reported under that of its first piece.
            inner.take("id");
            inner.take("name");
        }
        self.part.field("functionCall")?.fields()?.merge(&inner);
        self.part.fields()?.merge(&part.rest);
        let args = self.args()?;
        args.fields()?;
        for (key, raw) in whole.rest() {
            args.field(key)?.set(raw.json())?;
        }
        for raw in pieces {
            add_piece(args, &fields(raw).ok_or("a piece of an argument is no object")?)?;
        }
        Ok(continues)
    }

    /// The arguments so far.
    pub(super) fn args(&mut self) -> Result<&mut Growing, &'static str> {
        self.part.field("functionCall")?.field("args")
    }
}

fn add_piece(args: &mut Growing, piece: &Fields<'_>) -> Result<(), &'static str> {
    let path = piece.text("jsonPath").ok_or("a piece of an argument has no path")?;
    if let Some(said) = piece.text("stringValue") {
        return at(args, &path)?.add_text(&said);
    }
    let plain = piece.get("numberValue").or_else(|| piece.get("boolValue"));
    let null = piece.get("nullValue").map(|_| Json::default());
    match plain.map(Raw::json).or(null) {
        Some(value) => at(args, &path)?.set(value),
        None => Ok(()),
    }
}

/// Whether a part is a piece of a call.
pub(super) fn is_partial(inner: &Fields<'_>) -> bool {
    inner.get("partialArgs").is_some()
        || inner.get("willContinue").is_some_and(|raw| raw.get() == "true")
}

/// Whether a part has the name of its call.
pub(super) fn is_named(inner: &Fields<'_>) -> bool {
    inner.text("name").is_some_and(|name| !name.is_empty())
}

/// The maximum number of steps in a path: deeper JSON could not be read back.
const MAX_STEPS: usize = 100;

/// The value at a path, which is added if it is missing.
fn at<'g>(mut value: &'g mut Growing, path: &str) -> Result<&'g mut Growing, &'static str> {
    let mut rest = path.strip_prefix('$').ok_or("a path does not begin with $")?;
    for _ in 0..MAX_STEPS {
        if rest.is_empty() {
            return Ok(value);
        }
        (value, rest) = step(value, rest)?;
    }
    Err("a path is too deep")
}

/// The field or item to which the first step of a path leads, and the rest of the path.
fn step<'g, 'p>(
    value: &'g mut Growing,
    path: &'p str,
) -> Result<(&'g mut Growing, &'p str), &'static str> {
    const UNREAD: &str = "a path cannot be read";
    if let Some(name) = path.strip_prefix('.') {
        let (name, after) = name.split_at(name.find(['.', '[']).unwrap_or(name.len()));
        return if name.is_empty() { Err(UNREAD) } else { Ok((value.field(name)?, after)) };
    }
    let inner = path.strip_prefix('[').ok_or(UNREAD)?;
    if let Some((name, after)) = quoted(inner) {
        return Ok((value.field(&name)?, after.strip_prefix(']').ok_or(UNREAD)?));
    }
    let (index, after) = inner.split_once(']').ok_or(UNREAD)?;
    Ok((value.item(index.parse().map_err(|_| UNREAD)?)?, after))
}

/// Reads a name in quotes at the beginning of a text, and returns it with the rest. Escapes are as
/// in JSON, and a single quote may be escaped too.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut chars = text.char_indices();
    let (_, quote) = chars.next().filter(|(_, first)| "'\"".contains(*first))?;
    let mut json = String::from('"');
    while let Some((at, char)) = chars.next() {
        match char {
            _ if char == quote => {
                json.push('"');
                return serde_json::from_str(&json).ok().zip(text.get(at + 1..));
            }
            '"' => json.push_str("\\\""),
            '\\' => match chars.next()?.1 {
                '\'' => json.push('\''),
                other => json.extend(['\\', other]),
            },
            other => json.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests_of_partial {
    use super::*;
    use crate::growing::OTHER;

    fn set(node: &mut Growing, path: &str, value: &str) -> Result<(), &'static str> {
        at(node, path)?.set(Json::parse(value).unwrap())
    }

    fn add(node: &mut Growing, path: &str, piece: &str) -> Result<(), &'static str> {
        at(node, path)?.add_text(piece)
    }

    #[test]
    fn pieces_come_together_where_their_paths_lead() {
        let mut node = Growing::Object(Merged::default());
        set(&mut node, "$.whole", r#"{"z":1.0,"a":[2]}"#).unwrap();
        add(&mut node, "$.text", "a").unwrap();
        set(&mut node, "$.list[0].n", "1e2").unwrap();
        add(&mut node, "$.list[1]", "x").unwrap();
        add(&mut node, "$.text", "b").unwrap();
        set(&mut node, "$.whole.a[1]", "null").unwrap();
        let expected = r#"{"whole":{"z":1.0,"a":[2,null]},"text":"ab","list":[{"n":1e2},"x"]}"#;
        assert_eq!(node.tree().into_json().as_str(), expected);
    }

    #[test]
    fn two_shapes_at_one_place_are_an_error() {
        let mut node = Growing::Object(Merged::default());
        add(&mut node, "$.a", "x").unwrap();
        assert_eq!(set(&mut node, "$.a.b", "1"), Err(OTHER));
        assert_eq!(set(&mut node, "$.a", "1"), Err(OTHER));
        assert_eq!(set(&mut node, "$[0]", "1"), Err(OTHER));
        assert_eq!(add(&mut node, "$", "x"), Err(OTHER));
        assert!(set(&mut node, "$.b[1000000000]", "1").is_err());
    }
}

#[cfg(test)]
mod tests_of_path {
    use super::*;

    #[test]
    fn paths_have_names_and_indices() {
        for (path, expected) in [
            ("$", "1"),
            ("$.a.bé[0].c", r#"{"a":{"bé":[{"c":1}]}}"#),
            ("$['a.b'][\"c]\"]", r#"{"a.b":{"c]":1}}"#),
            (r#"$['it\'s "x"'][0]"#, r#"{"it's \"x\"":[1]}"#),
            (r#"$["\u00e9\\"]"#, r#"{"é\\":1}"#),
        ] {
            let mut root = Growing::default();
            at(&mut root, path).unwrap().set(Json::parse("1").unwrap()).unwrap();
            assert_eq!(root.tree().into_json().as_str(), expected, "{path}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for path in
            ["", "a", "$a", "$.", "$..a", "$[", "$[-1]", "$[*]", "$['a", "$['a'", "$[\"\\\"]"]
        {
            assert!(at(&mut Growing::default(), path).is_err(), "{path}");
        }
        let deep = format!("${}", "[0]".repeat(100_000));
        assert_eq!(at(&mut Growing::default(), &deep).err(), Some("a path is too deep"));
    }
}
