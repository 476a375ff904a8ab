//! Notes as a tool of an agent.
//!
//! [`spec`] is the tool's description for the model, which the host adds to requests, and [`call`]
//! runs a call.

use serde_json::{Map, Value, json};

use super::{
    error::NoteError,
    notes::{Note, Notes},
};
use crate::message::ToolSpec;

/// The name of the tool.
pub const NOTES: &str = "notes";

/// The description of the tool for a model.
const ABOUT: &str = include_str!("tool_notes.md");

/// Returns the description and schema of the tool for a model.
///
/// ```
/// assert_eq!(threadfold::notes::tool::spec().name, "notes");
/// ```
#[must_use]
pub fn spec() -> ToolSpec {
    let properties = json!({
        "name": text("The name of the note, a few words. Leave it out to list all notes."),
        "text": text("The text of the note. An empty text removes the note."),
    });
    let schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    ToolSpec::new(NOTES, ABOUT.trim_end(), schema)
}

/// Runs a call: reads its input, changes the notes, and returns the text for the model. The input is
/// `{"name", "text"}` to write a note, the same with an empty text to remove it, and `{}` to list
/// all. All notes together have at most `most` bytes, and at most [`Notes::MAX_BYTES`].
///
/// ```
/// use serde_json::json;
/// use threadfold::notes::{NoteError, Notes, tool};
///
/// let mut notes = Notes::default();
/// let answer = tool::call(&mut notes, &json!({"name": "port", "text": "8443"}), 4_000)?;
/// assert_eq!(answer, "The note is written. All notes have 8 of at most 4000 bytes.");
/// assert_eq!(tool::call(&mut notes, &json!({}), 4_000)?, "- port\n> 8443\n");
/// let full = tool::call(&mut notes, &json!({"name": "plan", "text": "x".repeat(100)}), 50);
/// assert_eq!(full, Err(NoteError::Full { found: 112, most: 50 }));
/// # Ok::<(), NoteError>(())
/// ```
///
/// # Errors
///
/// [`NoteError`], whose text is written for the model. The notes are then unchanged.
pub fn call(notes: &mut Notes, input: &Value, most: usize) -> Result<String, NoteError> {
    let Some(note) = written(input)? else {
        let list = notes.to_string();
        return Ok(if list.is_empty() { "There are no notes.".to_owned() } else { list });
    };
    let (most, before) = (most.min(Notes::MAX_BYTES), notes.bytes());
    let change = notes.change(&note.name, &note.text)?;
    let found = notes.bytes();
    // After a switch to a smaller window the notes may be too long already; they may shrink then.
    if found > most && found >= before {
        notes.undo(change);
        return Err(NoteError::Full { found, most });
    }
    let done = if note.text.is_empty() { "removed" } else { "written" };
    Ok(format!("The note is {done}. All notes have {found} of at most {most} bytes."))
}

/// Returns the note that a call writes; `None` if it lists all notes.
///
/// # Errors
///
/// [`NoteError`] if the input has another form, or no note can have this name and text.
pub(crate) fn written(input: &Value) -> Result<Option<Note>, NoteError> {
    let mismatch = NoteError::Type { field: "input", expected: "an object" };
    let fields = input.as_object().ok_or(mismatch)?;
    if fields.keys().any(|field| !["name", "text"].contains(&field.as_str())) {
        return Err(NoteError::UnknownField);
    }
    match (field(fields, "name")?, field(fields, "text")?) {
        (None, None) => Ok(None),
        (Some(name), Some(text)) => Note::new(name, text).map(Some),
        (Some(_), None) => Err(NoteError::Type { field: "text", expected: "a string" }),
        (None, Some(_)) => Err(NoteError::Type { field: "name", expected: "a string" }),
    }
}

/// The string in a field; a `null` counts as absent.
fn field<'f>(
    fields: &'f Map<String, Value>,
    field: &'static str,
) -> Result<Option<&'f str>, NoteError> {
    let mismatch = NoteError::Type { field, expected: "a string" };
    match fields.get(field).filter(|value| !value.is_null()) {
        None => Ok(None),
        Some(value) => value.as_str().map(Some).ok_or(mismatch),
    }
}

fn text(words: &str) -> Value {
    json!({"type": "string", "description": words})
}
