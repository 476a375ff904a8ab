//! The two tools by which a model compacts its thread, as described to the model.

use serde_json::json;

use crate::message::ToolSpec;

/// The name of the tool by which the model replaces ranges of the thread with summaries of its own.
///
/// ```
/// use futures::executor::block_on;
/// use std::sync::Arc;
/// use threadfold::session::{COMPACT, Session};
/// use threadfold::{Message, ModelAgent, Role, message::ToolUse, testing::ScriptedModel};
///
/// // Without `from` and `to` it is the whole thread, this call included.
/// let range = serde_json::json!({"replacements": [{"summary": "The user wants to know a colour."}]});
/// let call = Message::new(Role::Assistant, vec![ToolUse::new("t1", COMPACT, range).into()]);
/// let model = ScriptedModel::new([call, Message::assistant("Blue.")]);
/// let builder = Session::builder(ModelAgent::new(Arc::new(model))).compact_tool();
/// let mut session = builder.build()?;
/// block_on(async { session.send("Which colour?").await })?;
/// assert!(session.messages()[0].is_summary());
/// assert_eq!(session.log().standing().count(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub const COMPACT: &str = "compact";

/// The name of the tool without parameters: the session compacts the thread with its strategy.
///
/// ```
/// use futures::executor::block_on;
/// use std::sync::Arc;
/// use threadfold::session::{COMPACT_CONTEXT, Session};
/// use threadfold::{Message, ModelAgent, Role, strategy::KeepRecent, testing::ScriptedModel};
/// use threadfold::message::ToolUse;
///
/// let call = ToolUse::new("t1", COMPACT_CONTEXT, serde_json::json!({}));
/// let call = Message::new(Role::Assistant, vec![call.into()]);
/// let answers = [Message::assistant("Blue."), call, Message::assistant("It is a short word.")];
/// let mut session = Session::builder(ModelAgent::new(Arc::new(ScriptedModel::new(answers))))
///     .strategy(Arc::new(KeepRecent { messages: 1, ..KeepRecent::default() }))
///     .compact_context_tool()
///     .build()?;
/// block_on(async { session.send("Which colour?").await })?;
/// block_on(async { session.send("How long is that word?").await })?;
/// let last = session.log().standing().last().map(|record| record.reason.as_str());
/// assert_eq!(last, Some("agent_tool"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub const COMPACT_CONTEXT: &str = "compact_context";

/// The description of [`COMPACT`] for the model: when to use it, what a checkpoint is, and what
/// makes a good summary.
const ABOUT_COMPACT: &str = "\
Replaces parts of this conversation with summaries that you write, to free up context space.

When: between two pieces of work, once the conversation is long and parts of it are settled: files \
that were read and understood, attempts that failed, output that repeats itself. Not in the middle \
of an edit, and not for a few messages.

How: every user message ends with a checkpoint such as <checkpoint:a1b2c3>. A range begins right \
after the checkpoint `from` and ends with the checkpoint `to`. The message that `from` closes stays; \
the message that `to` closes goes. Without `from` the range begins at the start of the conversation, \
without `to` it ends here, this call included. Ranges must not overlap, and must not part a tool \
call from its result. The range is replaced by your summary, as a message of yours; an empty summary \
deletes it. Reminders and your own thinking from there on go as well. Nothing is undone on disk.

The summary is all that you will know of the range. Say what the user asked for and every rule they \
gave, in their words; what was done and what came of it; decisions and why; exact names: files, \
functions, commands, errors, numbers; what is open, and the next step. Write in the past tense what \
is done, so that it is not done again. Leave out what a look at the files will show.";

/// Returns the tool by which the model replaces ranges with summaries of its own, for hosts with a
/// loop of their own. The user messages must end with checkpoints:
/// [`Compactor::stamp`](crate::Compactor::stamp).
///
/// ```
/// use threadfold::compaction::{COMPACT, compact_tool};
///
/// assert_eq!(compact_tool().name, *COMPACT);
/// ```
#[must_use]
pub fn compact_tool() -> ToolSpec {
    let checkpoint = |words: &str| json!({"type": "string", "description": words});
    let range = json!({
        "type": "object",
        "properties": {
            "from": checkpoint("Id of the checkpoint after which the range begins. Leave it out to begin at the start."),
            "to": checkpoint("Id of the checkpoint with which the range ends. Leave it out to end here."),
            "summary": {"type": "string", "description": "What takes the place of the range. Empty to delete it."},
        },
        "required": ["summary"],
        "additionalProperties": false,
    });
    let schema = json!({
        "type": "object",
        "properties": {"replacements": {"type": "array", "minItems": 1, "items": range}},
        "required": ["replacements"],
        "additionalProperties": false,
    });
    ToolSpec::new(COMPACT, ABOUT_COMPACT, schema)
}

/// Returns the tool without parameters by which the model has its thread compacted, for hosts with a
/// loop of their own.
///
/// ```
/// use threadfold::compaction::{COMPACT_CONTEXT, compact_context_tool};
///
/// assert_eq!(compact_context_tool().name, *COMPACT_CONTEXT);
/// ```
#[must_use]
pub fn compact_context_tool() -> ToolSpec {
    let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
    ToolSpec::new(
        COMPACT_CONTEXT,
        "Compress conversation history to free up context space. Call it between two pieces of \
         work, when much of what was read or tried is settled and will not be needed word for word \
         again. Everything before the present piece of work is summed up; the user's last message \
         stays.",
        schema,
    )
}
