//! Addresses in a text.

use super::{class::FactClass, token::is_word};
use crate::message::steps;

/// Tells of the addresses in a word, and returns what stands before the first of them.
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
    // A word that runs into the address is no word of its own.
    word.get(..scheme).unwrap_or_default().trim_end_matches(is_word)
}

/// Without the sentence around it: a point behind it, and brackets that it does not open.
fn unbracketed(mut address: &str) -> &str {
    let opened = |open: char| address.chars().filter(|c| *c == open).count();
    let (mut round, mut square) = (opened('('), opened('['));
    let closed = |close: char| address.chars().filter(|c| *c == close).count();
    (round, square) = (closed(')').saturating_sub(round), closed(']').saturating_sub(square));
    loop {
        let spare = match address.chars().next_back() {
            Some('.' | ',' | ';' | ':' | '!' | '?' | '*') => true,
            Some(')') if round > 0 => {
                round -= 1;
                true
            }
            Some(']') if square > 0 => {
                square -= 1;
                true
            }
            _ => false,
        };
        if !spare {
            return address;
        }
        address = address.get(..address.len() - 1).unwrap_or_default();
    }
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

/// An address as it is compared: scheme and host without case, no slash at the end.
pub(super) fn key(address: &str) -> String {
    let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
    let path = path.strip_suffix('/').unwrap_or(path);
    format!("{}://{}{path}", scheme.to_ascii_lowercase(), host.to_lowercase())
}
