//! Request parameters, both ways.
//!
//! `generationConfig` and `toolConfig` are kept whole, and the fields of a [`Request`] are views of
//! them. What was changed there is written into them; nothing else is touched. Where the request
//! says all that one of them says, it is kept under a mark: then nothing of it is lost elsewhere.

use super::marks::*;
use crate::kit::*;
use serde_json::Number;

/// Returns the request with the parameters of the body.
pub(super) fn read(mut fields: Fields<'_>, mut request: Request) -> Request {
    let mut spelling = Spelling::default();
    if let Some(mut config) = open(&fields, GENERATION_CONFIG) {
        request.max_output = MAX_OUTPUT.get(&config).and_then(number);
        request.temperature = TEMPERATURE.get(&config).and_then(number);
        take_known(&mut config, MAX_OUTPUT, request.max_output.is_some());
        take_known(&mut config, TEMPERATURE, request.temperature.is_some());
        hide(&mut fields, &mut spelling, GENERATION_CONFIG, &config);
    }
    if let Some(mut config) = open(&fields, TOOL_CONFIG) {
        let calling = FUNCTION_CALLING.get(&config);
        request.tool_choice = calling.and_then(choice);
        let all = calling.and_then(Fields::of);
        let known = |key: &str| key == "mode" || ALLOWED_NAMES.is(key);
        let whole = all.is_some_and(|all| all.rest().all(|(key, _)| known(key)));
        take_known(&mut config, FUNCTION_CALLING, request.tool_choice.is_some() && whole);
        hide(&mut fields, &mut spelling, TOOL_CONFIG, &config);
    }
    request.extra = spelling.keep(fields);
    request
}

/// Returns the body but for its contents. `functions` says whether it declares any.
pub(super) fn write(
    request: &Request,
    options: &EncodeOptions,
    functions: &[Text],
    notes: &mut Notes,
) -> Object {
    notes.turn_to(None);
    let mut body = wire_fields(&request.extra, notes);
    if body.get("model").is_some() {
        // The address names the model; some servers repeat it here.
        body.set_some("model", options.model.clone());
    }
    write_generation(request, &mut body, notes);
    write_tools(request, functions, &mut body, notes);
    body
}

fn write_generation(request: &Request, body: &mut Object, notes: &mut Notes) {
    let came = Kept::find(&request.extra, GENERATION_CONFIG);
    let mut config = came.reopen();
    let view = came.fields();
    let view = view.as_ref();
    if view.and_then(|view| MAX_OUTPUT.get(view)).and_then(number) != request.max_output {
        patch(&mut config, MAX_OUTPUT, request.max_output.map(Tree::from));
    }
    let temperature = view.and_then(|view| TEMPERATURE.get(view)).and_then(number);
    if temperature != request.temperature {
        let written = request.temperature.and_then(Number::from_f64).map(Tree::Number);
        if request.temperature.is_some() && written.is_none() {
            notes.note(Change::ParameterDropped { name: TEMPERATURE.camel.into() });
        }
        patch(&mut config, TEMPERATURE, written);
    }
    came.put(config, body);
}

fn write_tools(request: &Request, functions: &[Text], body: &mut Object, notes: &mut Notes) {
    let came = Kept::find(&request.extra, TOOL_CONFIG);
    let view = came.fields();
    let view = view.as_ref().and_then(|view| FUNCTION_CALLING.get(view)).and_then(choice);
    if view == request.tool_choice {
        let config = came.reopen();
        return came.put(config, body);
    }
    let wanted = request.tool_choice.as_ref();
    let is_met = |choice: &&ToolChoice| match choice {
        ToolChoice::Tool(name) => functions.contains(name),
        ToolChoice::Auto | ToolChoice::Required | ToolChoice::None => !functions.is_empty(),
    };
    let met = wanted.filter(is_met);
    if met.is_none() && wanted.is_some() {
        notes.note(Change::ParameterDropped { name: "tool_choice".into() });
    }
    let mut config = came.reopen();
    patch(&mut config, FUNCTION_CALLING, met.map(|choice| write_choice(choice).into()));
    came.put(config, body);
}

/// A parameter object as it came: its key and its JSON.
struct Kept {
    key: &'static str,
    json: Option<Json>,
}

impl Kept {
    fn find(extra: &Extra, name: Spelled) -> Self {
        let spelled = Spelling::of(extra).key(name);
        let hidden = || extra.get(CODEC, mark_of(name)).map(|json| (spelled, json));
        let open = |key| extra.get(CODEC, key).map(|json| (key, json));
        let found = open(name.camel).or_else(|| open(name.snake)).or_else(hidden);
        Self {
            key: found.map_or(name.camel, |(key, _)| key),
            json: found.map(|(_, json)| json.clone()),
        }
    }

    fn fields(&self) -> Option<Fields<'_>> {
        Fields::parse(self.json.as_ref()?.as_str())
    }

    fn reopen(&self) -> Object {
        reopen(self.json.as_ref())
    }

    /// Puts the object into the body. An empty one is left out, unless it came empty.
    fn put(&self, config: Object, body: &mut Object) {
        let came_empty = self.json.as_ref().is_some_and(|json| json.as_str() == "{}");
        let is_other = self.json.is_some() && self.fields().is_none();
        if config.len() > 0 || came_empty {
            body.set(self.key, config);
        } else if !is_other {
            body.remove(self.key);
        }
    }
}

fn mark_of(name: Spelled) -> &'static str {
    if name == GENERATION_CONFIG { "~generationConfig" } else { "~toolConfig" }
}

fn open<'a>(fields: &Fields<'a>, name: Spelled) -> Option<Fields<'a>> {
    Fields::of(name.get(fields)?)
}

fn take_known(fields: &mut Fields<'_>, name: Spelled, known: bool) {
    if let Some(key) = name.in_fields(fields).filter(|_| known) {
        fields.take(key);
    }
}

/// Keeps an object as a mark if the fields of the request hold all of it.
fn hide(fields: &mut Fields<'_>, spelling: &mut Spelling, name: Spelled, rest: &Fields<'_>) {
    if rest.left() == 0
        && let Some(raw) = spelling.take(fields, name)
    {
        fields.note(mark_of(name), raw.json());
    }
}

fn patch(object: &mut Object, name: Spelled, value: Option<Tree>) {
    let key = name.in_object(object).unwrap_or(name.camel);
    match value {
        Some(value) => object.set(key, value),
        None => drop(object.remove(key)),
    }
}

fn choice(raw: Raw<'_>) -> Option<ToolChoice> {
    let fields = Fields::of(raw)?;
    let names = ALLOWED_NAMES.get(&fields).map(|raw| raw.items().unwrap_or_default());
    let names = names.unwrap_or_default();
    match (fields.text("mode")?.as_str(), names.as_slice()) {
        ("AUTO", []) => Some(ToolChoice::Auto),
        ("NONE", []) => Some(ToolChoice::None),
        ("ANY", []) => Some(ToolChoice::Required),
        ("ANY", [one]) => one.text().map(ToolChoice::Tool),
        _ => None,
    }
}

fn write_choice(choice: &ToolChoice) -> Object {
    let mode = |word: &'static str| Object::default().with("mode", word);
    match choice {
        ToolChoice::Auto => mode("AUTO"),
        ToolChoice::Required => mode("ANY"),
        ToolChoice::None => mode("NONE"),
        ToolChoice::Tool(name) => {
            let names = vec![Tree::from(name.clone())];
            mode("ANY").with(ALLOWED_NAMES.camel, names)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notes;

    fn rewritten(body: &str, change: impl FnOnce(&mut Request)) -> String {
        let mut request = read(Fields::parse(body).unwrap(), Request::default());
        change(&mut request);
        let (_, mut notes) = notes::prepare(&[], CODEC);
        let body = write(&request, &EncodeOptions::default(), &["f".into()], &mut notes);
        Tree::from(body).into_json().to_string()
    }

    #[test]
    fn untouched_parameters_keep_their_text() {
        for body in [
            r#"{"generationConfig":{}}"#,
            r#"{"generation_config":{"max_output_tokens":10,"temperature":1.50}}"#,
            r#"{"generationConfig":{"temperature":"warm","topK":1e1}}"#,
            r#"{"generationConfig":null,"toolConfig":7}"#,
            r#"{"toolConfig":{"functionCallingConfig":{"mode":"VALIDATED"}}}"#,
            r#"{"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["g"]}}}"#,
            r#"{"tool_config":{"function_calling_config":{"mode":"AUTO","x":1},"y":2}}"#,
        ] {
            assert_eq!(rewritten(body, |_| {}), body);
        }
    }

    #[test]
    fn what_was_changed_is_written_into_what_came() {
        let body = r#"{"generation_config":{"max_output_tokens":10,"topK":1.0},"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}}"#;
        let changed = rewritten(body, |request| {
            request.max_output = Some(20);
            request.temperature = Some(0.5);
            request.tool_choice = None;
        });
        let expected =
            r#"{"generation_config":{"max_output_tokens":20,"topK":1.0,"temperature":0.5}}"#;
        assert_eq!(changed, expected);
        let named = rewritten("{}", |request| {
            request.tool_choice = Some(ToolChoice::Tool("f".into()));
        });
        assert_eq!(
            named,
            r#"{"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f"]}}}"#
        );
    }
}
