//! Tool results that are longer than the host allows.

use super::{error::SessionError, session::Session};
use crate::{
    log::Event,
    message::{ContentBlock, TextBlock, ToolResult},
    recall::tool::RECALL,
    strategy::clip,
    tokens::TokenCounter,
};

impl Session {
    /// Cuts the results that are too long and logs the whole of them.
    pub(super) fn cut_long(
        &mut self,
        results: &mut [Option<ToolResult>],
    ) -> Result<(), SessionError> {
        let Some(most) = self.settings.max_tool_result else { return Ok(()) };
        let can_recall = self.specs.iter().any(|spec| spec.name == *RECALL);
        for result in results.iter_mut().flatten() {
            let Some(cut) = cut(result, most, self.agent.thread().counter().as_ref(), can_recall)
            else {
                continue;
            };
            let whole = std::mem::replace(result, cut);
            let now = self.now();
            self.journal.append(now, Event::ResultCut(Box::new(whole)))?;
        }
        Ok(())
    }
}

/// Returns the result with the head and the tail of its texts, so that they have at most this many
/// tokens together, and a note; `None` if it is short enough. Each text keeps the same share.
fn cut(
    result: &ToolResult,
    most: u64,
    counter: &dyn TokenCounter,
    can_recall: bool,
) -> Option<ToolResult> {
    let texts = || result.content.iter().filter_map(ContentBlock::as_text);
    let tokens = texts().map(|text| counter.text(text)).fold(0, u64::saturating_add);
    if tokens <= most {
        return None;
    }
    let share = |text: &str| {
        let share = u128::from(counter.text(text)) * u128::from(most) / u128::from(tokens);
        u64::try_from(share).unwrap_or(most)
    };
    let content = result.content.iter().map(|block| {
        let ContentBlock::Text(whole) = block else { return block.clone() };
        let text = clip(&whole.text, share(&whole.text), counter).into();
        TextBlock { text, extra: whole.extra.clone() }.into()
    });
    let mut content: Vec<ContentBlock> = content.collect();
    let bytes: usize = texts().map(|text| text.len()).sum();
    let mut note = format!("[This result has {bytes} bytes, so its middle is left out.");
    if can_recall {
        let id = serde_json::Value::from(result.tool_use_id.as_str());
        note.push_str(&format!(" To read all of it call recall with {{\"call\":{id}}}."));
    }
    note.push(']');
    content.push(ContentBlock::text(note));
    Some(ToolResult { content, ..result.clone() })
}
