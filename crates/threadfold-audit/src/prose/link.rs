//! URLs, hosts and e-mail addresses.

use super::{
    class::{FactClass, Note},
    token::is_word,
};
use crate::message::{slice, steps};

/// Notes the URL, host or e-mail address in a word, and returns the rest of the word, which may
/// contain other facts.
pub(crate) fn links<'a>(word: &'a str, note: Note<'_>) -> &'a str {
    let Some(at) = steps::through(word).find("://") else {
        if let Some(address) = mailbox(word).or_else(|| site(word)) {
            note(FactClass::Url, address);
            return "";
        }
        local(word).into_iter().for_each(|host| note(FactClass::Url, host));
        return word;
    };
    let before = slice(word, ..at);
    let scheme = before.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || c == '+').len();
    let address = slice(word, scheme..);
    let mut parts =
        address.split(|c: char| "\"'`<>{}|^\\\u{201d}\u{2019}\u{bb}".contains(c) || c.is_control());
    let address = unbracketed(parts.next().unwrap_or_default());
    if address.len() > at - scheme + 3 && scheme < at {
        note(FactClass::Url, address);
    }
    // Letters directly before the scheme are not a word of their own.
    slice(word, ..scheme).trim_end_matches(is_word)
}

/// Strips punctuation at the end, and closing brackets that the URL does not open.
fn unbracketed(mut address: &str) -> &str {
    let (mut round, mut square) = (surplus(address, '(', ')'), surplus(address, '[', ']'));
    loop {
        let mut chars = address.chars();
        match chars.next_back() {
            Some('.' | ',' | ';' | ':' | '!' | '?' | '*') => {}
            Some(')') if round > 0 => round -= 1,
            Some(']') if square > 0 => square -= 1,
            _ => return address,
        }
        address = chars.as_str();
    }
}

/// Returns the number of closing brackets without an opening one.
fn surplus(address: &str, open: char, close: char) -> usize {
    address.matches(close).count().saturating_sub(address.matches(open).count())
}

/// Returns a local host or an IP address: `localhost:3000`, `10.0.0.1`, `127.0.0.1:80`.
fn local(word: &str) -> Option<&str> {
    let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let (host, port) = word.split_once(':').map_or((word, None), |(host, port)| (host, Some(port)));
    let port = port.map(|port| port.split(['/', ':']).next().unwrap_or_default());
    let parts: Vec<&str> = host.splitn(5, '.').collect();
    let is_ip = parts.len() == 4 && parts.iter().all(|part| part.parse::<u8>().is_ok());
    let named = host == "localhost" && port.is_some();
    let is_valid = port.is_none_or(|port| {
        (2..=5).contains(&port.len()) && port.bytes().all(|b| b.is_ascii_digit())
    });
    ((is_ip || named) && is_valid).then_some(word)
}

/// Returns the address of a site without a scheme: `www.example.org`, `example.org/start`. Only
/// known endings count, because other words with dots are mostly names in code.
fn site(word: &str) -> Option<&str> {
    const ENDS: [&str; 9] = ["com", "de", "edu", "example", "fr", "io", "net", "org", "uk"];
    let word = unbracketed(word.trim_matches(|c: char| "\"'`(<>*".contains(c)));
    let (host, page) = word.split_once('/').unwrap_or((word, ""));
    let (name, last) = host.rsplit_once('.')?;
    let is_name =
        name.len() > 1 && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-'));
    let is_certain =
        host.starts_with("www.") || !page.is_empty() || matches!(last, "com" | "org" | "example");
    (is_name && is_certain && ENDS.contains(&last)).then_some(word)
}

/// Returns an e-mail address, without the marks around it: `ada@example.org`.
fn mailbox(word: &str) -> Option<&str> {
    let word = word.strip_prefix("mailto:").unwrap_or(word);
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    let (name, host) = word.split_once('@')?;
    let (_, last) = host.rsplit_once('.')?;
    let is_name = name.chars().all(|c| c.is_alphanumeric() || "._%+-".contains(c));
    let is_host = host.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-'));
    (is_name && is_host && last.len() > 1 && last.chars().all(char::is_alphabetic)).then_some(word)
}

/// Returns the form in which a URL is compared: scheme and host in lower case, no slash at the end.
pub(super) fn key(address: &str) -> String {
    let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
    let path = path.strip_suffix('/').unwrap_or(path);
    format!("{}://{}{path}", scheme.to_ascii_lowercase(), host.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_without_a_scheme() {
        let rows = [
            ("www.example.net", Some("www.example.net")),
            ("(docs.tool.example/start).", Some("docs.tool.example/start")),
            ("example.org,", Some("example.org")),
            ("<ada@example.org>", Some("ada@example.org")),
            ("mailto:ada@example.org", Some("ada@example.org")),
            ("self.com.run", None),
            ("Tool.app/main.rs", None),
            ("obj.io", None),
            ("git@host.org:a/b", None),
            ("pkg@1.2.3", None),
        ];
        for (word, expected) in rows {
            let mut found = Vec::new();
            links(word, &mut |_, text| found.push(text.to_owned()));
            assert_eq!(found.first().map(String::as_str), expected, "{word}");
        }
    }
}
