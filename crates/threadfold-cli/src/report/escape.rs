//! Escapes texts of a log for a page.

use std::fmt::Write;

use threadfold_terminal::thousands;

/// Returns a text that a page shows literally. Markup in it has no effect, and invisible or
/// direction-changing characters are shown by name.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            '\u{0}'..='\u{1f}' => out.push(char::from_u32(0x2400 + c as u32).unwrap_or('\u{fffd}')),
            '\u{7f}' => out.push('\u{2421}'),
            _ if is_hidden(c) => {
                let _ = write!(out, "[U+{:04X}]", c as u32);
            }
            _ => out.push(c),
        }
    }
    out
}

/// Whether a character is invisible, or changes how others are shown.
fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{80}'..='\u{9f}'
        | '\u{61c}'
        | '\u{200b}'
        | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{fffe}' | '\u{ffff}'
        | '\u{e0000}'..='\u{e007f}')
}

/// Splits a text after this many characters, if it is longer.
pub(crate) fn divided(text: &str, most: usize) -> (&str, &str) {
    let at = text.char_indices().nth(most).map_or(text.len(), |(at, _)| at);
    text.split_at(at)
}

/// The beginning of a text on one line, for a page.
pub(crate) fn line(text: &str, most: usize) -> String {
    let (head, rest) = divided(text.trim(), most);
    let one = head.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = if rest.is_empty() { "" } else { "…" };
    format!("{}{end}", escaped(&one))
}

/// Returns a text with the part after `shown` characters folded, and the part after `most` replaced
/// by a note.
pub(crate) fn folded(text: &str, shown: usize, most: usize) -> String {
    let (head, rest) = divided(text, shown);
    if rest.is_empty() {
        return format!("<pre class=\"said\">{}</pre>", escaped(head));
    }
    let (rest, left) = divided(rest, most);
    let note = match left.len() {
        0 => String::new(),
        bytes => {
            format!(
                "<p class=\"note\">{} more bytes are left out here.</p>",
                thousands(bytes as u64)
            )
        }
    };
    format!(
        "<pre class=\"said\">{}…</pre><details><summary>the rest, {} characters</summary>\
         <pre class=\"said\">{}</pre>{note}</details>",
        escaped(head),
        thousands((rest.chars().count() + left.chars().count()) as u64),
        escaped(rest),
    )
}

/// Returns a number in short form: 950, 12.3 k, 1.2 M.
pub(crate) fn short(number: u64) -> String {
    let with = |unit: u64, name: &str| {
        let tenths = number.saturating_mul(10) / unit;
        match tenths {
            0..100 if !tenths.is_multiple_of(10) => {
                format!("{}.{} {name}", tenths / 10, tenths % 10)
            }
            _ => format!("{} {name}", tenths / 10),
        }
    };
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => with(1_000, "k"),
        1_000_000.. => with(1_000_000, "M"),
    }
}
