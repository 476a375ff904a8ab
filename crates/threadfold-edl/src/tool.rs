//! Scripts as tools of an agent: `edl` runs a script, `get_file` shows files.
//!
//! A tool is a name, a description, a schema and a function over a [`Workspace`]. The host offers
//! it to the model. Wrong input never causes a panic: the reply is an error text that says what to
//! change.

use serde_json::{Value, json};

use super::{limits::Limits, script::Script, workspace::Workspace};

/// The largest number of characters that a call of `get_file` shows.
const SHOWN_CHARACTERS: usize = 40_000;

/// The largest number of files that a call of `get_file` shows.
const SHOWN_FILES: usize = 100;

/// The name of the tool that runs an edit script.
pub const EDL: &str = "edl";

/// The name of the tool that shows files.
pub const GET_FILE: &str = "get_file";

/// Returns name, description and JSON schema of each tool, for the model.
///
/// ```
/// use threadfold_edl::tool;
///
/// let [(name, _, schema), _] = tool::specs();
/// assert_eq!((name, &schema["required"][0]), (tool::EDL, &"script".into()));
/// ```
#[must_use]
pub fn specs() -> [(&'static str, &'static str, Value); 2] {
    let script = json!({ "type": "string", "description": "The edit script to run." });
    let (strings, description) = (json!({ "type": "string" }), "The files to show.");
    let paths = json!({
        "type": "array", "items": strings, "minItems": 1, "description": description,
    });
    let [start, count] = [
        "The first line to show. Default: 1.",
        "How many lines to show. Default: as many as there is room for.",
    ]
    .map(|description| json!({ "type": "integer", "minimum": 1, "description": description }));
    let properties = json!({ "paths": paths, "start_line": start, "line_count": count });
    [
        (EDL, include_str!("tool_edl.md"), schema("script", json!({ "script": script }))),
        (GET_FILE, include_str!("tool_get_file.md"), schema("paths", properties)),
    ]
}

/// Returns the schema of an object with these properties, one of which is required.
fn schema(required: &str, properties: Value) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": [required],
        "additionalProperties": false,
    })
}

/// Runs a call of the tool with this name, within these limits, and returns the text for the model.
///
/// ```
/// use serde_json::json;
/// use threadfold_edl::{Limits, Workspace, tool};
///
/// let (mut workspace, limits) = (Workspace::new(), Limits::default());
/// let input = json!({ "script": "newfile notes.md\ninsert_after <<END\nfirst\nEND\n" });
/// assert!(tool::call(tool::EDL, &mut workspace, &input, &limits).is_ok());
/// assert_eq!(workspace.text("notes.md"), Some("first\n"));
///
/// let reply = tool::call(tool::GET_FILE, &mut workspace, &json!({ "paths": "notes.md" }), &limits);
/// assert!(reply.is_err_and(|text| text.contains("`paths` must be a list")));
/// ```
///
/// # Errors
///
/// The text for the model, if there is no such tool, if the script cannot be read, if a file fails,
/// or if a file to show does not exist. The other files of the call are edited or shown
/// nevertheless.
pub fn call(
    name: &str,
    workspace: &mut Workspace,
    input: &Value,
    limits: &Limits,
) -> Result<String, String> {
    match name {
        EDL => run_script(workspace, input, limits),
        GET_FILE => show_files(workspace, input),
        _ => Err(format!("There is no tool {name}. There are {EDL} and {GET_FILE}.")),
    }
}

fn run_script(workspace: &mut Workspace, input: &Value, limits: &Limits) -> Result<String, String> {
    let script = input.get("script").and_then(Value::as_str);
    let script = script.ok_or("the input must be an object with the string `script`")?;
    let script = Script::parse_within(script, limits)
        .map_err(|error| format!("The script was not run: {error}"))?;
    let report = script.run_within(workspace, limits);
    if report.is_ok() { Ok(report.to_string()) } else { Err(report.to_string()) }
}

fn show_files(workspace: &Workspace, input: &Value) -> Result<String, String> {
    let paths = input.get("paths").and_then(Value::as_array).filter(|paths| !paths.is_empty());
    let paths = paths.ok_or("`paths` must be a list of at least one path")?;
    if paths.len() > SHOWN_FILES {
        return Err(format!("`paths` holds {} paths, the limit is {SHOWN_FILES}", paths.len()));
    }
    let start = line_number(input, "start_line")?.unwrap_or(1);
    let lines = Lines { start, count: line_number(input, "line_count")? };
    let (mut shown, mut is_error) = (Vec::new(), false);
    let mut room = SHOWN_CHARACTERS;
    for path in paths {
        let path = path.as_str().ok_or("`paths` must hold strings only")?;
        let part = match workspace.text(path) {
            Some(text) => lines.of(text, &mut room),
            None => {
                is_error = true;
                "\nerror: there is no such file".to_owned()
            }
        };
        shown.push(format!("=== {path} ==={part}"));
    }
    let shown = shown.join("\n\n");
    if is_error { Err(shown) } else { Ok(shown) }
}

/// Reads a line number or a number of lines, both of which are at least 1.
fn line_number(input: &Value, name: &str) -> Result<Option<usize>, String> {
    let Some(value) = input.get(name).filter(|value| !value.is_null()) else { return Ok(None) };
    let number =
        value.as_u64().filter(|number| *number > 0).and_then(|it| usize::try_from(it).ok());
    number.map(Some).ok_or_else(|| format!("`{name}` must be a whole number from 1, found {value}"))
}

/// The lines of a file to show.
struct Lines {
    start: usize,
    count: Option<usize>,
}

impl Lines {
    /// Returns as many of these lines as fit into `room`, in the form that follows the path in a
    /// reply.
    fn of(&self, text: &str, room: &mut usize) -> String {
        let Self { start, count } = *self;
        let total = text.split_inclusive('\n').count();
        if start > total.max(1) {
            return format!("\nerror: the file has {total} lines");
        }
        let (mut shown, mut last, mut is_cut) = (String::new(), start - 1, false);
        for line in text.split_inclusive('\n').skip(start - 1).take(count.unwrap_or(usize::MAX)) {
            let characters = line.chars().count();
            // Only a line that does not fit into an empty reply is cut. For a line that does not
            // fit into the rest of a reply, the model calls again.
            if characters > *room && *room < SHOWN_CHARACTERS {
                break;
            }
            shown.extend(line.chars().take(*room));
            is_cut = characters > *room;
            *room = room.saturating_sub(characters);
            last += 1;
        }
        if last < start && total > 0 {
            return format!("\n(no room is left: ask again, with start_line {start})");
        }
        if is_cut {
            shown.push_str("\n(the rest of this line is left out)");
        }
        if last < total && count.is_none() {
            shown.push_str(&format!("\n(go on with start_line {})", last + 1));
        }
        let is_part = start > 1 || last < total;
        let range =
            if is_part { format!(" lines {start} to {last} of {total}") } else { String::new() };
        format!("{range}\n{}", shown.strip_suffix('\n').unwrap_or(&shown))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace() -> Workspace {
        let mut workspace = Workspace::new();
        workspace.insert("/a", "one\ntwo\nthree\n").expect("a path");
        workspace
    }

    /// The text of a reply, and whether it is an error.
    fn text(reply: Result<String, String>) -> (String, bool) {
        let is_error = reply.is_err();
        (reply.unwrap_or_else(|text| text), is_error)
    }

    fn show(input: Value) -> (String, bool) {
        text(call(GET_FILE, &mut workspace(), &input, &Limits::default()))
    }

    #[test]
    fn the_example_in_the_description_runs() {
        let description = specs()[0].1;
        let example = description.split("```").nth(1).expect("a fenced example");
        let mut workspace = Workspace::new();
        workspace.insert("/summary.md", "# Done\n").expect("a path");
        let reply = call(EDL, &mut workspace, &json!({ "script": example }), &Limits::default());
        assert!(reply.is_ok(), "{reply:?}");
        let text = workspace.text("/summary.md").expect("a summary");
        assert!(text.starts_with("# Done\n") && text.len() > 10, "{text}");
    }

    #[test]
    fn any_input_gets_a_reply() {
        let inputs = [
            json!(null),
            json!([]),
            json!({ "script": 1 }),
            json!({ "paths": [] }),
            json!({ "paths": [1] }),
            json!({ "paths": ["/a"], "start_line": -1 }),
            json!({ "paths": ["/a"], "start_line": 9 }),
            json!({ "paths": ["/a"], "line_count": 1e300 }),
        ];
        for (tool, input) in
            [EDL, GET_FILE].into_iter().flat_map(|it| inputs.iter().map(move |i| (it, i)))
        {
            let (reply, is_error) = text(call(tool, &mut workspace(), input, &Limits::default()));
            assert!(is_error || reply.contains("9") || input["start_line"] == 9, "{input}");
        }
    }

    #[test]
    fn files_are_shown_whole_or_by_lines() {
        assert_eq!(
            show(json!({ "paths": ["//a"] })),
            ("=== //a ===\none\ntwo\nthree".to_owned(), false)
        );
        let part = json!({ "paths": ["/a", "/b"], "start_line": 2, "line_count": 1 });
        let text = "=== /a === lines 2 to 2 of 3\ntwo\n\n=== /b ===\nerror: there is no such file";
        assert_eq!(show(part), (text.to_owned(), true));
    }

    #[test]
    fn lines_count_from_one_to_the_last() {
        let of = |start_line: u64, line_count: u64| {
            show(json!({ "paths": ["/a"], "start_line": start_line, "line_count": line_count }))
        };
        let number = |name| (format!("`{name}` must be a whole number from 1, found 0"), true);
        assert_eq!(of(0, 1), number("start_line"));
        assert_eq!(of(1, 0), number("line_count"));
        assert_eq!(of(3, 9), ("=== /a === lines 3 to 3 of 3\nthree".to_owned(), false));
        assert_eq!(of(4, 1), ("=== /a ===\nerror: the file has 3 lines".to_owned(), false));
    }

    #[test]
    fn an_empty_file_is_shown_without_lines() {
        let mut workspace = Workspace::new();
        workspace.insert("/a", "").expect("a path");
        let mut shown = |start: u64| {
            let input = json!({ "paths": ["/a"], "start_line": start });
            text(call(GET_FILE, &mut workspace, &input, &Limits::default())).0
        };
        assert_eq!(shown(1), "=== /a ===\n");
        assert_eq!(shown(2), "=== /a ===\nerror: the file has 0 lines");
    }

    #[test]
    fn the_number_of_shown_files_is_limited() {
        let paths = |count| show(json!({ "paths": vec!["/a"; count] }));
        assert_eq!(paths(100).0.matches("=== /a ===\none").count(), 100);
        let refused = "`paths` holds 101 paths, the limit is 100".to_owned();
        assert_eq!(paths(101), (refused, true));
    }

    #[test]
    fn a_line_that_fills_a_reply_is_shown_whole_and_a_longer_one_is_cut() {
        let shown = |length: usize, rest: &str| {
            let mut workspace = Workspace::new();
            let line = "x".repeat(length - 1) + "\n";
            workspace.insert("/a", line + rest).expect("a path");
            let (text, _) = text(call(
                GET_FILE,
                &mut workspace,
                &json!({ "paths": ["/a"] }),
                &Limits::default(),
            ));
            let (heading, body) = text.split_once('\n').expect("a heading");
            (heading.to_owned(), body.replace('x', "").replace('\n', "|"))
        };
        let said = |heading: &str, body: &str| (heading.to_owned(), body.to_owned());
        assert_eq!(shown(40_000, ""), said("=== /a ===", ""));
        let cut = "|(the rest of this line is left out)";
        assert_eq!(shown(40_001, ""), said("=== /a ===", cut));
        let (part, on) = ("=== /a === lines 1 to 1 of 2", "|(go on with start_line 2)");
        assert_eq!(shown(40_000, "y"), said(part, &format!("|{on}")));
        assert_eq!(shown(40_001, "y"), said(part, &format!("{cut}{on}")));
    }

    #[test]
    fn a_file_without_room_is_to_be_requested_again_from_its_start() {
        let mut workspace = workspace();
        workspace.insert("/full", "x".repeat(39_999)).expect("a path");
        let input = json!({ "paths": ["/full", "/a"], "start_line": 1 });
        let (text, _) = text(call(GET_FILE, &mut workspace, &input, &Limits::default()));
        let expected = "=== /a ===\n(no room is left: ask again, with start_line 1)";
        assert_eq!(text.rsplit_once("\n\n").map(|(_, last)| last), Some(expected));
    }

    #[test]
    fn each_schema_has_the_fields_of_its_tool() {
        let required = specs().map(|(name, _, schema)| {
            let fields = schema["properties"].as_object().into_iter().flatten();
            let mut fields: Vec<&String> = fields.map(|(name, _)| name).collect();
            // Another crate may switch on that `serde_json` keeps their order.
            fields.sort();
            format!("{name} {fields:?} {}", schema["required"])
        });
        let expected = [
            r#"edl ["script"] ["script"]"#,
            r#"get_file ["line_count", "paths", "start_line"] ["paths"]"#,
        ];
        assert_eq!(required, expected);
    }

    #[test]
    fn a_long_file_states_how_to_read_on() {
        let mut workspace = Workspace::new();
        workspace.insert("/a", "0123456789\n".repeat(10_000)).expect("a path");
        let input = json!({ "paths": ["/a"] });
        let (shown, _) = text(call(GET_FILE, &mut workspace, &input, &Limits::default()));
        assert!(shown.starts_with("=== /a === lines 1 to 3636 of 10000\n0123"));
        assert!(shown.ends_with("\n(go on with start_line 3637)"));
        let full = "012345678\n".repeat(4_000);
        workspace.insert("/a", full.as_str()).expect("a path");
        let (shown, _) = text(call(GET_FILE, &mut workspace, &input, &Limits::default()));
        assert_eq!(shown, format!("=== /a ===\n{}", full.trim_end()));
    }
}
