//! The output of the examples for texts from outside.

use crate::support::examples::terminal;

#[test]
fn a_text_for_the_terminal_does_not_control_it() {
    let rows = [
        ("plain \u{e4}\n\tand more \u{1f600}", "plain \u{e4}\n\tand more \u{1f600}"),
        ("\x1b[31mred\x1b[0m", "[31mred[0m"),
        ("\x1b]52;c;cm0gLXJm\x07", "]52;c;cm0gLXJm"),
        ("kept\roverwritten\x08\x7f", "keptoverwritten"),
        ("\u{9b}2J\u{202e}txt.exe\u{2066}", "2Jtxt.exe"),
    ];
    for (text, expected) in rows {
        assert_eq!(terminal::plain(text), expected);
        let first = terminal::first_line(text, 100);
        assert!(!first.contains(|c: char| c.is_control() && c != '\t'), "{first:?}");
    }
}
