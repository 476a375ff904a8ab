//! The notes of an agent: short texts that it writes for itself and that every compaction keeps.
//!
//! With the tool [`notes`](tool), which
//! [`SessionBuilder::notes_tool`](crate::session::SessionBuilder::notes_tool) adds to a session, a
//! model writes notes under names, replaces and removes them. Each change is an event of the log
//! ([`Event::NoteWritten`](crate::log::Event::NoteWritten)), so notes survive compactions and their
//! undo, a restart and a fork. A truncation takes back the notes of the messages that it drops.
//!
//! Whatever strategy compacts the thread, the notes that its messages no longer show are listed at
//! the end of the new summary, word for word, under a title of their own. They are the agent's own
//! words: no note becomes a [rule](crate::ledger), a statement of the user or a part of a summary,
//! whatever it looks like, because each of its lines begins with a mark of quotation.
//!
//! A note has at most [`Notes::MAX_NOTE_BYTES`] bytes, and all notes together have at most
//! [`Notes::MAX_BYTES`]. In a session they also take at most an eighth of the model's window.
//!
//! What was removed without a note is still in the log, and the tool
//! [`recall`](mod@crate::recall) reads it.
//!
//! ```
//! use threadfold::notes::Notes;
//!
//! let mut notes = Notes::default();
//! notes.write("plan", "1. Port the lexer.\n2. Port the parser.")?;
//! notes.write("port", "8443")?;
//! notes.write("plan", "2. Port the parser.")?;
//! assert_eq!(notes.to_string(), "- plan\n> 2. Port the parser.\n- port\n> 8443\n");
//! # Ok::<(), threadfold::notes::NoteError>(())
//! ```

mod error;
mod list;
#[expect(clippy::module_inception, reason = "the folder is the module, the file its centre")]
mod notes;
pub mod tool;

pub use error::NoteError;
pub(crate) use list::{is_list, titled, without};
pub(crate) use notes::Change;
pub use notes::{Note, Notes};
