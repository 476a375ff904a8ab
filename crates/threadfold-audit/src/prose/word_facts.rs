//! Facts of one word: paths, URLs, names, versions, hashes.

use super::{
    chunk::{Chunk, Trust, chunks},
    class::{FactClass, Note},
    failure::Codes,
    link, number, path, symbol,
    word_kinds::{self, CharKinds, Word},
};

/// Notes the facts among the words of a text.
pub(crate) fn word_facts(text: &str, trust: Trust, note: Note<'_>) {
    each_word(text, trust, note, |_, _| ());
}

/// Notes the facts among the words of a text, and the error codes.
pub(crate) fn words_and_codes(text: &str, trust: Trust, note: Note<'_>) {
    let mut codes = Codes::default();
    each_word(text, trust, note, |word, note| codes.read(word, note));
}

fn each_word(text: &str, trust: Trust, note: Note<'_>, mut visit: impl FnMut(&Word<'_>, Note<'_>)) {
    // The previous word, or its last piece: `Python` before `3.12`.
    let mut before = "";
    for whole in word_kinds::words(text) {
        visit(&whole, note);
        let Word { text: word, kinds } = whole;
        if !may_be_fact(kinds) {
            before = if kinds.has_any(CharKinds::BODY) { word } else { before };
            continue;
        }
        let rest = if may_be_link(word, kinds) { link::links(word, note) } else { word };
        for chunk in chunks(rest) {
            if chunk.opens_call && path::is_dotted_call(chunk.text) {
                if let Some(name) = symbol::symbol(&chunk, trust) {
                    note(FactClass::Identifier, name);
                }
            } else {
                classify(&chunk, kinds, before, trust, note);
            }
            before = chunk.text;
        }
    }
}

const LETTER: CharKinds = CharKinds::LOWER.and(CharKinds::UPPER);
/// Characters that only names contain.
const NAME: CharKinds = CharKinds::INNER
    .and(CharKinds::UNDERSCORE)
    .and(CharKinds::BACKTICK)
    .and(CharKinds::HYPHEN)
    .and(CharKinds::COLON)
    .and(CharKinds::POINT)
    .and(CharKinds::WIDE);
const PATH: CharKinds = CharKinds::POINT.and(CharKinds::SLASH);

/// Whether a word with these characters may contain a fact. One in six words of prose passes, and
/// one in two words of code.
fn may_be_fact(kinds: CharKinds) -> bool {
    kinds.has_any(NAME.and(PATH)) || (kinds.has_any(CharKinds::DIGIT) && kinds.has_any(LETTER))
}

fn may_be_link(word: &str, kinds: CharKinds) -> bool {
    let has_slash = kinds.has_any(CharKinds::SLASH);
    let has_point = kinds.has_any(CharKinds::POINT);
    let is_site = has_point
        && (has_slash
            || word.contains('@')
            || [".com", ".org", "www."].iter().any(|it| word.contains(it)));
    let has_number = kinds.has_any(CharKinds::DIGIT);
    is_site
        || (kinds.has_any(CharKinds::COLON) && has_slash)
        || (has_number && (has_point || kinds.has_any(CharKinds::COLON)))
}

/// The maximum length of a fact of one word, in bytes.
const LONGEST: usize = 400;

fn classify(chunk: &Chunk<'_>, kinds: CharKinds, before: &str, trust: Trust, note: Note<'_>) {
    let text = chunk.text;
    if text.len() > LONGEST || chunk.severed {
        return;
    }
    let trust = if chunk.ticked && trust == Trust::Prose { Trust::Full } else { trust };
    // A range of commits: `a1b2c3d..e4f5a6b`.
    if kinds.has_any(CharKinds::POINT) && word_kinds::has_pair(text, *b"..") && !text.contains('/')
    {
        text.splitn(2, "..").filter_map(number::hash).for_each(|side| note(FactClass::Hash, side));
        return;
    }
    let digit = kinds.has_any(CharKinds::DIGIT);
    if kinds.has_any(PATH)
        && let Some(path) = path::path(text, trust)
    {
        note(FactClass::Path, path);
    } else if (digit || text.len() == number::UUID)
        && let Some(hash) = number::hash(text)
    {
        note(FactClass::Hash, hash);
    } else if digit && let Some(version) = number::version(text, before) {
        note(FactClass::Version, version);
    } else if kinds.has_any(NAME)
        && let Some(name) = symbol::symbol(chunk, trust)
    {
        note(FactClass::Identifier, name);
    }
}
