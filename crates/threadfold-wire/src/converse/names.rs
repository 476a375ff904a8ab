//! The ids of calls and the names of documents: which are legal, and what becomes of the others.

use super::forms::{self, NAME};
use crate::{
    contract::Change,
    names::{Renamed, Rules, TOOLS, is_word},
    normal::{Thread, fit, fit_blocks},
    notes::Notes,
};
use threadfold_core::message::{ContentBlock, Document, Json, Text, ToolResult};

pub(super) const IDS: Rules = Rules {
    is_legal: |char| is_word(char) || matches!(char, '.' | ':'),
    nameless: "call",
    ..TOOLS
};
pub(super) const DOCUMENTS: Rules = Rules {
    most: 200,
    is_legal: |char| {
        char.is_ascii_alphanumeric() || matches!(char, ' ' | '-' | '(' | ')' | '[' | ']')
    },
    nameless: "document",
    spaced: true,
    ..TOOLS
};

/// Finds a new name for every document whose name the provider refuses. The same name gets the same
/// new one everywhere, and no new one is another's.
pub(super) fn rewrite_titles(thread: &mut Thread, notes: &mut Notes) {
    let titles = thread.iter().flat_map(|(at, message)| {
        message.content.iter().flat_map(titles).map(move |title| (Some(*at), title))
    });
    let name_note = |from, to| Change::NameRewritten { from, to };
    let renamed = Renamed::new(titles, &DOCUMENTS, notes, name_note);
    if renamed.is_empty() {
        return;
    }
    for (_, message) in thread {
        fit_blocks(message, |block| {
            if let ContentBlock::ToolResult(result) = block {
                let content = fit(&result.content, |block| Ok(retitled(block, &renamed)));
                return Ok(content.map(|content| ToolResult { content, ..result.clone() }.into()));
            }
            Ok(retitled(block, &renamed))
        });
    }
}

/// Returns a document under its new name, if it gets one.
fn retitled(block: &ContentBlock, renamed: &Renamed) -> Option<ContentBlock> {
    let written = renamed.written(title(block)?);
    let ContentBlock::Document(document) = block else { return None };
    let changes = document.title.as_ref() != Some(&written);
    changes.then(|| Document { title: Some(written), ..document.clone() }.into())
}

/// The title of a document, and those of the documents in a result.
fn titles(block: &ContentBlock) -> impl Iterator<Item = &Text> + Clone {
    let nested = if let ContentBlock::ToolResult(result) = block { &*result.content } else { &[] };
    title(block).into_iter().chain(nested.iter().filter_map(title))
}

/// The title of a document, unless it came in a body: the provider sometimes accepts titles that
/// break its rule.
fn title(block: &ContentBlock) -> Option<&Text> {
    let ContentBlock::Document(document) = block else { return None };
    let came = document.extra.get(NAME, forms::DOCUMENT);
    document.title.as_ref().filter(|title| came != Some(&Json::text(title)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{names::rewrite_ids, notes};
    use threadfold_core::message::{Message, Role, ToolUse};

    #[test]
    fn a_new_id_is_nobody_elses() {
        let call = |id: &str| ToolUse::new(id, "read", Json::parse("{}").unwrap()).into();
        let calls = |ids: [&str; 6]| Message::new(Role::Assistant, ids.map(call).into());
        let long = "x".repeat(70);
        let ids = ["a|b", "a_b", "a/b", "", "a.b:c", &long];
        let (mut thread, mut notes) = notes::prepare(&[calls(ids)], "c");
        rewrite_ids(&mut thread, &IDS, &mut notes);
        let short = "x".repeat(56);
        assert_eq!(thread[0].1, calls(["a_b_2", "a_b", "a_b_3", "call", "a.b:c", &short]));
    }

    #[test]
    fn names_of_documents_keep_what_may_stand() {
        let rows = [
            ("Report (v2) [final]-1", "Report (v2) [final]-1"),
            ("report_v2.pdf", "report-v2-pdf"),
            (" a \t b ", "a b"),
            ("\u{e9}", "-"),
            ("", "document"),
        ];
        for (name, mended) in rows {
            assert_eq!(DOCUMENTS.mend(name), mended);
            assert!(DOCUMENTS.accept(mended));
        }
        assert!(!DOCUMENTS.accept("a  b") && !DOCUMENTS.accept(&"a".repeat(201)));
    }
}
