//! Odd texts: other scripts, invisible characters, and texts that are slow to read.

/// Opening and closing marks, some of which never close.
#[rustfmt::skip]
pub(crate) const PAIRS: &[(&str, &str)] = &[
    ("\"", "\""), ("'", "'"), ("\u{201c}", "\u{201d}"), ("\u{2018}", "\u{2019}"),
    ("\u{ab}", "\u{bb}"), ("\u{201e}", "\u{201c}"), ("`", "`"), ("(", ")"), ("[", "]"),
    ("**", "**"), ("<b>", "</b>"), ("\"", ""), ("(", ""), ("`", ""), ("<q>", ""),
];
/// Texts of other scripts, and invisible characters.
#[rustfmt::skip]
pub(crate) const SCRIPTS: &[&str] = &[
    "\u{6c38}\u{8fdc}\u{4e0d}\u{8981}\u{78b0}\u{5b83}\u{3002}",
    "\u{5fc5}\u{305a}\u{3001}\u{6b62}\u{3081}\u{3066}\u{304f}\u{3060}\u{3055}\u{3044}\u{ff01}",
    "\u{c808}\u{b300} \u{d558}\u{c9c0} \u{b9c8}\u{c138}\u{c694}.",
    "\u{300c}\u{7aef}\u{53e3}\u{300d}8443\u{ff1f}",
    "\u{644}\u{627} \u{62a}\u{644}\u{645}\u{633} \u{627}\u{644}\u{645}\u{644}\u{641}\u{60c} \u{623}\u{628}\u{62f}\u{64b}\u{627}\u{61f}",
    "\u{5dc}\u{5d0} \u{5dc}\u{5d2}\u{5e2}\u{5ea}!", "\u{202e}reversed\u{202c}",
    "\u{200f}\u{200e}\u{2067}x\u{2069}",
    "\u{915}\u{943}\u{92a}\u{92f}\u{93e} \u{928} \u{915}\u{930}\u{947}\u{902}\u{964}",
    "\u{e44}\u{e21}\u{e48}\u{e04}\u{e27}\u{e23}", "e\u{301}a\u{308}\u{323}",
    "Z\u{351}\u{36b}a\u{343}\u{36a}", "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}",
    "\u{1f1e9}\u{1f1ea}\u{1f3fd}", "\u{200b}\u{200c}\u{feff}\u{ad}",
    "\u{130}stanbul \u{df}\u{1e9e} \u{fb01}n \u{1d400}", "\u{a0}\u{2003}\u{3000}\u{2028}\u{85}",
    "\u{1}\u{7}\u{1b}[31m\u{1b}]0;\u{7f}",
    "\u{41d}\u{438}\u{43a}\u{43e}\u{433}\u{434}\u{430} \u{43d}\u{435} \u{442}\u{440}\u{43e}\u{433}\u{430}\u{439}.",
];

/// Parts of texts that are slow to read if a reader starts again at each part.
#[rustfmt::skip]
pub(crate) const HOSTILE: &[&str] = &[
    "word ", "should ", "You should. ", "must ", "may not ", "never ", "forget ", "a", ".", "!?",
    ". ", ", ", "\"", "'", "`", "```", "```\n", "``` a", "\u{201c}", "\"a \"b ", "((", "))",
    "[(\"`", "- ", "- \n", "1. ", "1. a\n", "> ", "> > ", "- [ ] x\n", "TODO: x\n", "# ", "<a>",
    "</a>", "<a></a>", "<a </a ", "<a>\n", "<output></output>", "<output>\n</output>\n", "<output>",
    "</output>", "<result>a</output>", "a/", "a.", "a::", "a_", "aB", "://", "http://a ", "1",
    "1 ms ", "1.2 ", "v", "-", "--a ", "e.g. ", "(e.g. ", "\n", "\r\n", " ", "\t", "\u{3000}",
    "\u{3002}", "\u{3042}", "\u{301}", "\u{200d}", "\u{1b}[", "\u{1b}[0m", "$ ls -a\n",
    "cat << EOF\n", "Error: a b\n", "HTTP 404 ", "checkpoint a1b2c3 ", "checkpoint ", "never a b. ",
    "\u{4e0d}", "\u{628}", "E0425 ", "a, ", "a - ", "a (b) ", "says must ", "use a instead. ",
    "- `a`: b 1, c 2, d 3\n", "(9 more left out)\n", "- `a`: b{n} 1\n", "b{n} 1, ", "\\", "\\# ",
    "Never do it. ", "You may use not instead of ",
    "{\"a\":", "[", "Never open {n}. ", "Forget never open {n}. ", "Always open at most {n}. ",
    "You may open {n}. ", "src/a{n}.rs ", "a{n}/a{n}/a{n}.rs ", "Error: e{n}\n", "`ls -a {n}` ",
    "\"quote {n}\" ", "TODO: do {n}\n", "$ cargo run {n}\n", "<t{n}></t{n}>", "<t{n}>", "</t{n}>",
    "<output{n}></output{n}>\n", "a_{n} ", "{n} ms ", "http://a.b/{n} ", "word{n} ",
];

/// Returns a text of this many parts, with the number of each in place of `{n}`.
pub(crate) fn repeated(part: &str, count: usize) -> String {
    (0..count).map(|n| part.replace("{n}", &n.to_string())).collect()
}

/// Returns a text in this many pairs.
pub(crate) fn nested((open, close): (&str, &str), count: usize) -> String {
    format!("{}word{}", open.repeat(count), close.repeat(count))
}
