//! The model of the provider: what it says to an agent.

use serde_json::{Map, Value, json};
use threadfold::wire::Dialect;
use threadfold_testing::rulebook::{Asked, Said};

/// A command is run at most so many times more.
const MOST_REPEATS: u64 = 2;

/// How the shells of agents are called, and the field of the command.
const SHELLS: [(&str, &str); 6] = [
    ("bash", "command"),
    ("Bash", "command"),
    ("exec_command", "cmd"),
    ("shell_command", "command"),
    ("run_shell_command", "command"),
    ("execute_command", "command"),
];

/// The course of a task, and what came back.
#[derive(Debug)]
pub(crate) struct Steps {
    all: u64,
    /// The user runs the commands and hands in their outputs.
    typed: bool,
    window: u64,
    sums: bool,
    answers: u64,
    number: u64,
    tries: u64,
    /// Results that came back with lines missing, although prompt, tools and the newest messages fit.
    changed: Vec<Value>,
    /// Those that were larger than what is left beside prompt and tools.
    too_large: u64,
    repeated: u64,
    /// Requests of an agent beside its task, such as for the title of a session.
    beside: u64,
    done: bool,
}

impl Steps {
    pub(crate) fn new(all: u64, typed: bool, window: u64, sums: bool) -> Self {
        Self {
            all,
            typed,
            window,
            sums,
            answers: 0,
            // The first request of a user who runs the commands has an output already.
            number: u64::from(typed),
            tries: 0,
            changed: Vec::new(),
            too_large: 0,
            repeated: 0,
            beside: 0,
            done: false,
        }
    }

    pub(crate) fn seen(&self) -> Value {
        json!({
            "unread_changed": self.changed, "unread_too_large": self.too_large,
            "repeated": self.repeated, "beside": self.beside, "done": self.done,
        })
    }

    /// The next answer. With a manual budget for thinking it begins with some.
    pub(crate) fn said(&mut self, asked: &Asked<'_>) -> Said {
        self.answers += 1;
        let said = self.next(asked);
        let thinks = asked.body["thinking"]["type"] == json!("enabled");
        if thinks { said.after("I look at the newest output.") } else { said }
    }

    fn next(&mut self, asked: &Asked<'_>) -> Said {
        if self.all == 0 {
            if has_result(asked) {
                let text = "It was read and understood. ".repeat(8);
                return Said::text(format!("Part {} is done. {text}", self.answers));
            }
            let path = format!("src/part_{}.rs", self.answers);
            return Said::call("read", json!({ "path": path }));
        }
        if self.typed {
            self.read_result(asked);
            self.done = self.number > self.all;
            return Said::text(edit(self.number - 1));
        }
        let Some((shell, input)) = shell(asked.body) else {
            self.beside += 1;
            return Said::text(beside(asked.body));
        };
        self.read_result(asked);
        if self.number > self.all {
            self.done = true;
            return Said::text(format!("All {} steps are done.", self.all));
        }
        Said::call(shell, input(&self.command()))
    }

    /// Without the wait, an agent's shell may lose what was written just before the end.
    fn command(&self) -> String {
        let Self { number, .. } = self;
        let lines = lines(*number);
        format!(
            "seq -f 'step {number}: line %g of a long report about the build' {lines}; sleep 0.2"
        )
    }

    /// Judges the newest result, and decides whether the same command or the next one follows.
    fn read_result(&mut self, asked: &Asked<'_>) {
        if self.number == 0 {
            self.number = 1;
            return;
        }
        let (count, number) = (lines(self.number), self.number);
        // An agent may answer for the model between an output and the next words of the user.
        let newest =
            if self.typed { list(asked).into_iter().cloned().collect() } else { unread(asked) };
        let newest = Value::from(newest).to_string();
        let is_missing = |line: &u64| {
            !newest
                .contains(&format!("step {number}: line {line} of a long report about the build"))
        };
        let missing = (1..=count).filter(is_missing).count();
        if missing > 0 {
            // With 500 tokens for what stands around the lines.
            let limit = if self.sums { limit(asked.body) } else { 0 };
            let whole = tokens(&Value::from(head(asked))) + count * 12 + 500 + limit;
            if whole <= self.window {
                self.changed.push(json!({"step": number, "missing": missing, "of": count,
                    "request": asked.tokens, "would_be": whole}));
            } else {
                self.too_large += 1;
            }
            if !self.typed && self.tries < MOST_REPEATS {
                self.tries += 1;
                self.repeated += 1;
                return;
            }
        }
        (self.number, self.tries) = (self.number + 1, 0);
    }
}

/// The answer to a request beside the task: the least value of its schema, if it has one.
fn beside(body: &Value) -> String {
    let config = &body["generationConfig"];
    let mut schemas = ["responseJsonSchema", "responseSchema"].into_iter();
    match schemas.find_map(|key| config.get(key)) {
        Some(schema) => least(schema).to_string(),
        None => "Steps of the build".to_owned(),
    }
}

fn least(schema: &Value) -> Value {
    match schema["type"].as_str().map(str::to_lowercase).as_deref() {
        Some("object") => {
            let fields = schema["properties"].as_object().into_iter().flatten();
            fields.map(|(name, field)| (name.clone(), least(field))).collect()
        }
        Some("array") => json!([]),
        Some("boolean") => json!(false),
        Some("integer" | "number") => json!(0),
        Some(_) | None => json!(""),
    }
}

/// An answer that appends a line to a file.
fn edit(number: u64) -> String {
    format!(
        "Step {number} is read.\n\nsteps.txt\n```\n<<<<<<< SEARCH\n=======\nstep {number} is read\n>>>>>>> REPLACE\n```\n"
    )
}

/// Every seventh result is three times as long.
fn lines(number: u64) -> u64 {
    if number.is_multiple_of(7) { 180 } else { 60 }
}

fn tokens(value: &Value) -> u64 {
    value.to_string().len() as u64 / 4
}

/// The tokens of the answer that a request asks for.
fn limit(body: &Value) -> u64 {
    let keys = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
    let of_gemini = body["generationConfig"]["maxOutputTokens"].as_u64();
    keys.iter().find_map(|key| body[*key].as_u64()).or(of_gemini).unwrap_or(0)
}

fn list<'a>(asked: &Asked<'a>) -> Vec<&'a Value> {
    let key = match asked.dialect {
        Dialect::OpenAiResponses => "input",
        Dialect::Gemini => "contents",
        Dialect::Anthropic | Dialect::OpenAiChat | Dialect::BedrockConverse | _ => "messages",
    };
    asked.body[key].as_array().into_iter().flatten().collect()
}

/// What comes after the last answer of the model.
fn unread(asked: &Asked<'_>) -> Vec<Value> {
    let all = list(asked);
    let is_answer = |item: &&Value| {
        item["role"] == "assistant"
            || item["role"] == "model"
            || item["type"] == "function_call"
            || item["type"] == "reasoning"
    };
    let from = all.iter().rposition(is_answer).map_or(0, |place| place + 1);
    all.into_iter().skip(from).cloned().collect()
}

/// System prompt and tools.
fn head(asked: &Asked<'_>) -> Vec<Value> {
    let fields =
        ["system", "instructions", "systemInstruction", "tools"].map(|key| asked.body[key].clone());
    let all = list(asked).into_iter();
    let first = all.filter(|item| item["role"] == "system" || item["role"] == "developer");
    fields.into_iter().chain(first.cloned()).collect()
}

fn has_result(asked: &Asked<'_>) -> bool {
    let Some(last) = list(asked).pop() else { return false };
    let mut blocks = last["content"].as_array().into_iter().flatten();
    last["type"] == "function_call_output"
        || last["role"] == "tool"
        || blocks.any(|block| block["type"] == "tool_result")
}

/// The name of the agent's shell, and what makes its input from a command; none if it has no shell.
fn shell(body: &Value) -> Option<(String, impl Fn(&str) -> Value)> {
    let tools = body["tools"].as_array()?.iter();
    let tools = tools.flat_map(|tool| match tool["functionDeclarations"].as_array() {
        Some(of_gemini) => of_gemini.iter().collect(),
        None => vec![tool],
    });
    tools.into_iter().find_map(|tool| {
        let tool = tool.get("function").unwrap_or(tool);
        let name = tool["name"].as_str()?;
        let (_, field) = SHELLS.iter().find(|(shell, _)| *shell == name)?;
        let mut schemas = ["parameters", "parametersJsonSchema", "input_schema"].into_iter();
        let schema = schemas.find_map(|key| tool.get(key))?;
        let mut required = Map::new();
        for key in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let value = match schema["properties"][key]["type"].as_str() {
                Some("string" | "STRING") => json!("Run the next step"),
                Some("boolean" | "BOOLEAN") => json!(false),
                _ => continue,
            };
            required.insert(key.to_owned(), value);
        }
        let input = move |command: &str| {
            let mut input = required.clone();
            input.insert((*field).to_owned(), json!(command));
            Value::Object(input)
        };
        Some((name.to_owned(), input))
    })
}
