//! Indented JSON.

use crate::message::run_of_text;

/// The maximum indent. Deeper values stay on one line, so that deep nesting in a few bytes cannot
/// produce a large output.
const DEPTH: usize = 16;

/// Returns JSON with one line for each value, indented by two spaces. The text is never parsed into
/// a tree, so key order, numbers and strings stay unchanged.
pub(super) fn pretty(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 5 / 4);
    let mut depth: usize = 0;
    let mut rest = json.trim_start();
    while !rest.is_empty() {
        let (token, after) = rest.split_at_checked(token_length(rest)).unwrap_or((rest, ""));
        rest = after.trim_start();
        match token {
            "{" | "[" => {
                out.push_str(token);
                depth += 1;
                if !rest.starts_with(['}', ']']) {
                    break_line(&mut out, depth, depth);
                }
            }
            "}" | "]" => {
                let outer = depth.saturating_sub(1);
                if !out.ends_with(['{', '[']) {
                    break_line(&mut out, depth, outer);
                }
                out.push_str(token);
                depth = outer;
            }
            "," => {
                out.push(',');
                break_line(&mut out, depth, depth);
            }
            ":" => out.push_str(": "),
            _ => out.push_str(token),
        }
    }
    out
}

/// Starts a line with this indent, unless the nesting exceeds [`DEPTH`].
fn break_line(out: &mut String, depth: usize, indent: usize) {
    if depth <= DEPTH {
        out.push('\n');
        (0..indent).for_each(|_| out.push_str("  "));
    }
}

/// Returns the length in bytes of the first token of a text; at least one character.
fn token_length(text: &str) -> usize {
    if text.starts_with(['{', '}', '[', ']', ',', ':']) {
        return 1;
    }
    let Some(string) = text.strip_prefix('"') else {
        return text
            .bytes()
            .position(|byte| b",:{}[]\" \n\r\t".contains(&byte))
            .unwrap_or(text.len());
    };
    let mut at = 0;
    loop {
        let rest = string.as_bytes().get(at..).unwrap_or_default();
        at += run_of_text(rest);
        match string.as_bytes().get(at) {
            Some(b'"') => return at + 2,
            // An escaped quote does not end the string.
            Some(b'\\') => at += 2,
            // Valid strings contain no control characters, but the input may be invalid.
            Some(_) => at += 1,
            None => return text.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::pretty;

    #[test]
    fn every_value_has_a_line_and_nothing_else_changes() {
        let json = r#"{"z":1.00,"a":[{"b c":"d, \" {e}"}, [] ,{}],"n":null}"#;
        let expected = "{\n  \"z\": 1.00,\n  \"a\": [\n    {\n      \"b c\": \"d, \\\" {e}\"\n    },\n    [],\n    {}\n  ],\n  \"n\": null\n}";
        assert_eq!(pretty(json), expected);
    }

    #[test]
    fn the_output_parses_to_the_same_value() {
        let json = r#"{"deep":[[[[[[[[[[[[[[[[[[[[1,2],3]]]]]]]]]]]]]]]]]]],"s":"\\"}"#;
        let value: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&pretty(json)).unwrap(), value);
    }

    #[test]
    fn hostile_nesting_stays_small() {
        let json = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        assert!(pretty(&json).len() < json.len() + 1_000);
    }

    #[test]
    fn invalid_json_terminates_too() {
        for text in ["", "\"", "{", "}}", "]", "\"\\", "a b", "\u{a0}x"] {
            let _ = pretty(text);
        }
    }
}
