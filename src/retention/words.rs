//! Facts of one word: paths, addresses, names, versions, hashes.

use super::{
    chunk::{Chunk, Trust, chunks},
    class::FactClass,
    link, number, path, symbol,
};

/// Tells of the facts among the words of a text.
pub(super) fn words(text: &str, trust: Trust, note: &mut dyn FnMut(FactClass, &str)) {
    let mut before = "";
    for word in text.split_whitespace() {
        let rest = link::links(word, note);
        for chunk in chunks(rest) {
            if chunk.opens_call && path::is_dotted_call(chunk.text) {
                symbol::symbol(&chunk, trust, note);
            } else {
                classify(&chunk, before, trust, note);
            }
            before = chunk.text;
        }
    }
}

/// No fact of one word is longer.
const LONGEST: usize = 400;

fn classify(chunk: &Chunk<'_>, before: &str, trust: Trust, note: &mut dyn FnMut(FactClass, &str)) {
    let text = chunk.text;
    if text.len() > LONGEST || chunk.severed {
        return;
    }
    let trust = if chunk.ticked && trust == Trust::Prose { Trust::Full } else { trust };
    if let Some((one, other)) = text.split_once("..").filter(|_| !text.contains('/')) {
        for side in [one, other] {
            number::hash(side, note);
        }
        return;
    }
    let _ = path::path(text, trust, note)
        || number::hash(text, note)
        || number::version(text, before, note)
        || symbol::symbol(chunk, trust, note);
}
