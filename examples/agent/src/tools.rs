//! The three tools of the agent: read, edit, search.

use std::{fmt::Write as _, sync::Arc};

use serde_json::{Value, json};
use threadfold::{
    async_trait,
    message::{ToolSpec, ToolUse},
    model::{Tool, ToolContext, ToolOutput},
};

use crate::folder::Folder;

/// The maximum number of lines in a result.
const MOST_LINES: usize = 400;

/// The maximum length of a line in a result, because some files are a single line.
const LONGEST_LINE: usize = 400;

/// All tools over one folder.
pub(crate) fn tools(folder: &Arc<Folder>) -> [Arc<dyn Tool>; 3] {
    [
        Arc::new(Read(Arc::clone(folder))),
        Arc::new(Edit(Arc::clone(folder))),
        Arc::new(Search(Arc::clone(folder))),
    ]
}

/// Reads lines of a file.
#[derive(Debug)]
struct Read(Arc<Folder>);

/// Replaces a text in a file, or writes a new file.
#[derive(Debug)]
struct Edit(Arc<Folder>);

/// Lists files, or the lines that contain a text.
#[derive(Debug)]
struct Search(Arc<Folder>);

#[async_trait]
impl Tool for Read {
    fn spec(&self) -> ToolSpec {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Relative to the folder."},
                "first_line": {"type": "integer", "description": "From 1; the default is 1."},
            },
            "required": ["path"],
        });
        ToolSpec::new("read", "Reads a file, up to 400 lines at once.", schema)
    }

    async fn call(
        &self,
        call: &ToolUse,
        _: &ToolContext<'_>,
    ) -> Result<ToolOutput, Box<dyn std::error::Error + Send + Sync>> {
        let input = call.input.json()?.to_value()?;
        let path = text(&input, "path")?;
        let first = input.get("first_line").and_then(Value::as_u64).unwrap_or(1).max(1);
        let skipped = usize::try_from(first - 1)?;
        let content = self.0.read(path)?;
        let mut lines = content.lines().skip(skipped);
        let mut answer = String::new();
        for line in lines.by_ref().take(MOST_LINES) {
            writeln!(answer, "{}", shortened(line))?;
        }
        match lines.count() {
            0 if answer.is_empty() => Ok(ToolOutput::from("(no lines)")),
            0 => Ok(ToolOutput::from(answer)),
            more => Ok(ToolOutput::from(format!("{answer}({more} more lines)"))),
        }
    }
}

#[async_trait]
impl Tool for Edit {
    fn spec(&self) -> ToolSpec {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Relative to the folder."},
                "old": {"type": "string", "description": "The text to replace, which stands in \
                    the file exactly once. Empty for a new file."},
                "new": {"type": "string", "description": "The text in its place."},
            },
            "required": ["path", "old", "new"],
        });
        ToolSpec::new("edit", "Replaces a text in a file, or writes a new file.", schema)
    }

    async fn call(
        &self,
        call: &ToolUse,
        _: &ToolContext<'_>,
    ) -> Result<ToolOutput, Box<dyn std::error::Error + Send + Sync>> {
        let input = call.input.json()?.to_value()?;
        let (path, old, new) = (text(&input, "path")?, text(&input, "old")?, text(&input, "new")?);
        if old.is_empty() {
            if self.0.has(path)? {
                return Err(format!("{path} exists: say which text to replace").into());
            }
            self.0.write(path, new)?;
            return Ok(ToolOutput::from(format!("{} lines written", new.lines().count())));
        }
        let content = self.0.read(path)?;
        match content.matches(old).count() {
            1 => self.0.write(path, &content.replacen(old, new, 1))?,
            0 => return Err(format!("{path} does not hold this text").into()),
            found => {
                let words = format!("{path} holds this text {found} times: say more of it");
                return Err(words.into());
            }
        }
        let (before, after) = (old.lines().count(), new.lines().count());
        Ok(ToolOutput::from(format!("{before} lines became {after}")))
    }
}

#[async_trait]
impl Tool for Search {
    fn spec(&self) -> ToolSpec {
        let schema = json!({
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "Empty to list the files."},
                "path": {"type": "string", "description": "A folder; the default is all."},
            },
        });
        ToolSpec::new("search", "Lists files, or the lines that hold a text.", schema)
    }

    async fn call(
        &self,
        call: &ToolUse,
        _: &ToolContext<'_>,
    ) -> Result<ToolOutput, Box<dyn std::error::Error + Send + Sync>> {
        let input = call.input.json()?.to_value()?;
        let text_of = |key| input.get(key).and_then(Value::as_str).unwrap_or_default();
        let (wanted, files) = (text_of("text"), self.0.files(text_of("path"))?);
        let found = if wanted.is_empty() { files } else { self.lines(&files, wanted) };
        let shown = found.iter().take(MOST_LINES).map(String::as_str).collect::<Vec<_>>();
        match found.len().checked_sub(MOST_LINES) {
            _ if found.is_empty() => Ok(ToolOutput::from("(nothing found)")),
            Some(more) if more > 0 => {
                Ok(ToolOutput::from(format!("{}\n({more} more)", shown.join("\n"))))
            }
            _ => Ok(ToolOutput::from(shown.join("\n"))),
        }
    }
}

impl Search {
    fn lines(&self, files: &[String], wanted: &str) -> Vec<String> {
        let mut found = Vec::new();
        for path in files {
            // Files that are not text are skipped.
            let Ok(content) = self.0.read(path) else { continue };
            let lines = content.lines().enumerate().filter(|(_, line)| line.contains(wanted));
            found.extend(
                lines.map(|(number, line)| format!("{path}:{}: {}", number + 1, shortened(line))),
            );
        }
        found
    }
}

fn text<'v>(input: &'v Value, key: &str) -> Result<&'v str, String> {
    input.get(key).and_then(Value::as_str).ok_or_else(|| format!("{key} is needed, a text"))
}

fn shortened(line: &str) -> String {
    match line.char_indices().nth(LONGEST_LINE) {
        Some((end, _)) => format!("{} (cut)", line.get(..end).unwrap_or(line)),
        None => line.to_owned(),
    }
}
