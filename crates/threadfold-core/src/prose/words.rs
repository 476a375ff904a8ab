//! Facts of one word: paths, addresses, names, versions, hashes.

use super::{
    chunk::{Chunk, Trust, chunks},
    class::FactClass,
    link, number, path,
    scan::{self, Signs, Word},
    symbol,
};

/// Tells of the facts among the words of a text.
pub(crate) fn words(text: &str, trust: Trust, note: &mut dyn FnMut(FactClass, &str)) {
    // The last word, or the last piece of it.
    let mut before = "";
    for Word { text: word, signs } in scan::words(text) {
        if !may_be_fact(signs) {
            before = if signs.has_any(Signs::BODY) { word } else { before };
            continue;
        }
        let rest = if may_be_link(signs) { link::links(word, note) } else { word };
        for chunk in chunks(rest) {
            if chunk.opens_call && path::is_dotted_call(chunk.text) {
                symbol::symbol(&chunk, trust, note);
            } else {
                classify(&chunk, signs, before, trust, note);
            }
            before = chunk.text;
        }
    }
}

const LETTER: Signs = Signs::LOWER.and(Signs::UPPER);
/// What only names have.
const NAME: Signs = Signs::INNER
    .and(Signs::UNDERSCORE)
    .and(Signs::BACKTICK)
    .and(Signs::HYPHEN)
    .and(Signs::COLON)
    .and(Signs::POINT)
    .and(Signs::WIDE);
const PATH: Signs = Signs::POINT.and(Signs::SLASH);

/// Whether a word with these signs may be or hold a fact: one in six words of prose, and a half of
/// those of code.
fn may_be_fact(signs: Signs) -> bool {
    signs.has_any(NAME.and(PATH)) || (signs.has_any(Signs::DIGIT) && signs.has_any(LETTER))
}

fn may_be_link(signs: Signs) -> bool {
    let address = signs.has_any(Signs::COLON) && signs.has_any(Signs::SLASH);
    address || (signs.has_any(Signs::DIGIT) && signs.has_any(Signs::COLON.and(Signs::POINT)))
}

/// No fact of one word is longer.
const LONGEST: usize = 400;

fn classify(
    chunk: &Chunk<'_>,
    signs: Signs,
    before: &str,
    trust: Trust,
    note: &mut dyn FnMut(FactClass, &str),
) {
    let text = chunk.text;
    if text.len() > LONGEST || chunk.severed {
        return;
    }
    let trust = if chunk.ticked && trust == Trust::Prose { Trust::Full } else { trust };
    if signs.has_any(Signs::POINT) && scan::has_pair(text, *b"..") && !text.contains('/') {
        for side in text.splitn(2, "..") {
            number::hash(side, note);
        }
        return;
    }
    let digit = signs.has_any(Signs::DIGIT);
    let _ = (signs.has_any(PATH) && path::path(text, trust, note))
        || ((digit || text.len() == number::UUID) && number::hash(text, note))
        || (digit && number::version(text, before, note))
        || (signs.has_any(NAME) && symbol::symbol(chunk, trust, note));
}
