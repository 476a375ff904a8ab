//! URLs and hosts.

use super::{class::FactClass, token::is_word};
use crate::message::steps;

/// Notes the URL or host in a word, and returns the rest of the word, which may hold other facts.
pub(crate) fn links<'a>(word: &'a str, note: &mut dyn FnMut(FactClass, &str)) -> &'a str {
    let Some(at) = steps::through(word).find("://") else {
        if let Some(host) = local(word) {
            note(FactClass::Url, host);
        }
        return word;
    };
    let before = word.get(..at).unwrap_or_default();
    let scheme = before.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || c == '+').len();
    let address = word.get(scheme..).unwrap_or_default();
    let ends = |c: char| "\"'`<>{}|^\\\u{201d}\u{2019}\u{bb}".contains(c) || c.is_control();
    let end = address.find(ends).unwrap_or(address.len());
    let address = unbracketed(address.get(..end).unwrap_or_default());
    if address.len() > at - scheme + 3 && scheme < at {
        note(FactClass::Url, address);
    }
    // Letters directly before the scheme are not a word of their own.
    word.get(..scheme).unwrap_or_default().trim_end_matches(is_word)
}

/// Strips punctuation at the end, and closing brackets that the URL does not open.
fn unbracketed(mut address: &str) -> &str {
    let count = |bracket: char| address.matches(bracket).count();
    let mut round = count(')').saturating_sub(count('('));
    let mut square = count(']').saturating_sub(count('['));
    while let Some((last, before)) = split_last(address) {
        match last {
            '.' | ',' | ';' | ':' | '!' | '?' | '*' => {}
            ')' if round > 0 => round -= 1,
            ']' if square > 0 => square -= 1,
            _ => break,
        }
        address = before;
    }
    address
}

fn split_last(text: &str) -> Option<(char, &str)> {
    let mut chars = text.chars();
    Some((chars.next_back()?, chars.as_str()))
}

/// `localhost:3000`, `10.0.0.1`, `127.0.0.1:80`.
fn local(word: &str) -> Option<&str> {
    let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let (host, port) = word.split_once(':').map_or((word, None), |(host, port)| (host, Some(port)));
    let port = port.map(|port| port.split(['/', ':']).next().unwrap_or_default());
    let is_port =
        |port: &str| (2..=5).contains(&port.len()) && port.bytes().all(|b| b.is_ascii_digit());
    let parts: Vec<&str> = host.splitn(5, '.').collect();
    let is_ip = parts.len() == 4 && parts.iter().all(|part| part.parse::<u8>().is_ok());
    let named = host == "localhost" && port.is_some();
    ((is_ip || named) && port.is_none_or(is_port)).then_some(word)
}

/// Returns the form in which a URL is compared: scheme and host in lower case, no slash at the end.
pub(super) fn key(address: &str) -> String {
    let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
    let path = path.strip_suffix('/').unwrap_or(path);
    format!("{}://{}{path}", scheme.to_ascii_lowercase(), host.to_lowercase())
}
