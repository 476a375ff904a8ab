//! The types of items, and which of them belong together.

use crate::kit::*;

/// Calls that the host answers, with the type of the answer.
const CALLS: [(&str, &str); 7] = [
    (FUNCTION, FUNCTION_OUTPUT),
    (CUSTOM, CUSTOM_OUTPUT),
    ("apply_patch_call", "apply_patch_call_output"),
    ("computer_call", "computer_call_output"),
    ("local_shell_call", "local_shell_call_output"),
    ("shell_call", "shell_call_output"),
    (SEARCH, SEARCH_OUTPUT),
];

/// Calls that the provider answers itself, in the same item.
const HOSTED_CALLS: [&str; 4] =
    ["code_interpreter_call", "file_search_call", "mcp_call", "web_search_call"];

/// Calls that the provider answers in a separate item, which may be in a later response.
const PROGRAMS: [&str; 2] = ["program", "program_output"];
/// A search among tools may also be run by the host.
pub(super) const SEARCH: &str = "tool_search_call";
pub(super) const SEARCH_OUTPUT: &str = "tool_search_output";

pub(super) const FUNCTION: &str = "function_call";
pub(super) const CUSTOM: &str = "custom_tool_call";
pub(super) const FUNCTION_OUTPUT: &str = "function_call_output";
pub(super) const CUSTOM_OUTPUT: &str = "custom_tool_call_output";
pub(super) const LOCAL_SHELL_OUTPUT: &str = "local_shell_call_output";
pub(super) const REASONING: &str = "reasoning";
/// An item that the provider stored, named by its id.
pub(super) const REFERENCE: &str = "item_reference";
pub(super) const COMPACTION: &str = "compaction";
pub(super) const TRIGGER: &str = "compaction_trigger";
/// The host's answer to [`APPROVAL_REQUEST`].
pub(super) const APPROVAL: &str = "mcp_approval_response";
pub(super) const APPROVAL_REQUEST: &str = "mcp_approval_request";

/// Items that hold until a later one of their kind: the host offers more tools, or asks for another
/// effort or form (SDK openai 3.57). They may stand anywhere, also between reasoning and what it led
/// to.
const SETTINGS: [&str; 2] = ["additional_tools", "configuration_update"];

/// Whether an item of this type is a setting of the host.
pub(super) fn is_setting(kind: &str) -> bool {
    SETTINGS.contains(&kind)
}

/// The type of the answer to a call; `None` if the host does not answer calls of this type.
pub(super) fn output_of(kind: &str) -> Option<&'static str> {
    CALLS.iter().find(|(call, _)| *call == kind).map(|(_, output)| *output)
}

/// Whether an item of this type answers a call.
fn is_output(kind: &str) -> bool {
    CALLS.iter().any(|(_, output)| *output == kind)
}

/// Whether an answer of this type has the form of a function's answer.
pub(super) fn is_plain(output: &str) -> bool {
    output == FUNCTION_OUTPUT || output == CUSTOM_OUTPUT
}

/// Whether an item of this type is a call that the provider answers in the same item.
pub(super) fn is_hosted(kind: &str) -> bool {
    HOSTED_CALLS.contains(&kind)
}

/// Whether an answer of this type holds its output as text.
pub(super) fn takes_text(output: &str) -> bool {
    output == LOCAL_SHELL_OUTPUT || output == "apply_patch_call_output"
}

/// Whether an item of this type comes from the host.
fn is_of_host(kind: &str) -> bool {
    kind.ends_with("_output") || kind.ends_with("_response") || kind == TRIGGER || is_setting(kind)
}

/// The fields that identify an item and its role.
#[derive(Clone, Debug, Default)]
pub(super) struct Label {
    /// The type; `item_reference` for an item with an id only, empty for a message without a type.
    pub(super) kind: Text,
    pub(super) role: Option<Text>,
    pub(super) id: Option<Text>,
    /// The id of a call, or of what the item answers.
    pub(super) call_id: Option<Text>,
    /// Whether it is a call that the provider answers in a separate item, or such an answer.
    pub(super) is_of_provider: bool,
}

impl Label {
    /// Reads the label of an item.
    pub(super) fn read(raw: Raw<'_>) -> Self {
        Fields::of(raw).as_ref().map(Self::of).unwrap_or_default()
    }

    /// Reads the label of an item of these fields.
    pub(super) fn of(fields: &Fields<'_>) -> Self {
        Self::find(|key| fields.text(key))
    }

    /// Reads the label of an item whose texts this function finds.
    pub(super) fn find(text: impl Fn(&str) -> Option<Text>) -> Self {
        let (role, id) = (non_empty(text("role")), non_empty(text("id")));
        let is_reference = role.is_none() && text("id").is_some();
        let kind = non_empty(text("type")).or_else(|| is_reference.then(|| REFERENCE.into()));
        let kind = kind.unwrap_or_default();
        let call_id =
            non_empty(text(if kind == APPROVAL { "approval_request_id" } else { "call_id" }));
        let is_of_provider = PROGRAMS.contains(&kind.as_str())
            || ([SEARCH, SEARCH_OUTPUT].contains(&kind.as_str())
                && text("execution").is_some_and(|word| word == "server"));
        Self { kind, role, id, call_id, is_of_provider }
    }

    /// Whether it is a message.
    pub(super) fn is_message(&self) -> bool {
        self.kind == "message" || (self.kind.is_empty() && self.role.is_some())
    }

    /// Whether the model wrote it.
    pub(super) fn is_of_model(&self) -> bool {
        if self.is_message() {
            return self.role.as_deref() == Some("assistant");
        }
        self.is_of_provider || !is_of_host(&self.kind)
    }

    /// Whether it is a call that the host answers.
    pub(super) fn is_call(&self) -> bool {
        !self.is_of_provider && output_of(&self.kind).is_some()
    }

    /// Whether it is the host's answer to a call.
    pub(super) fn is_output(&self) -> bool {
        !self.is_of_provider && is_output(&self.kind)
    }

    /// Whether it is the provider's answer to one of its own calls.
    pub(super) fn is_of_providers_answer(&self) -> bool {
        self.is_of_provider && self.kind.ends_with("_output")
    }

    /// The id of a call that the provider answers itself.
    pub(super) fn provider_id(&self) -> Option<&Text> {
        self.call_id.as_ref().or(self.id.as_ref())
    }

    /// The identity of the item: its id, else the id of its call, else its type.
    pub(super) fn identity(&self) -> Text {
        let id = self.id.as_ref().or(self.call_id.as_ref()).unwrap_or(&self.kind);
        if id.is_empty() { "message".into() } else { id.clone() }
    }
}

fn non_empty(text: Option<Text>) -> Option<Text> {
    text.filter(|text| !text.is_empty())
}

/// The id of the reasoning that led to the next item of the model; empty if that reasoning has no
/// id, `None` if there was none since the user's last message.
#[derive(Debug, Default)]
pub(super) struct Trail(pub(super) Option<Text>);

impl Trail {
    /// Passes an item. `is_reasoning` is true for reasoning that this codec reads.
    pub(super) fn pass(&mut self, label: &Label, is_reasoning: bool) {
        if is_reasoning {
            self.0 = Some(label.id.clone().unwrap_or_default());
        } else if label.is_message() && !label.is_of_model() {
            self.0 = None;
        } else if label.kind == REFERENCE
            && let Some(id) = label.id.as_ref().filter(|id| id.starts_with("rs_"))
        {
            self.0 = Some(id.clone());
        }
    }
}
