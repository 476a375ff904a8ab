//! The models that write the summaries.

use std::sync::Arc;

use threadfold::{
    Model,
    testing::{ExtractiveModel, Scripted, ScriptedModel},
};

/// A model that writes summaries, with its name in the table.
pub(crate) struct Writer {
    pub(crate) name: &'static str,
    pub(crate) make: fn() -> Arc<dyn Model>,
}

/// Models that help, and models that do not.
pub(crate) const WRITERS: [Writer; 4] = [
    Writer { name: "a model that picks sentences", make: || Arc::new(ExtractiveModel) },
    Writer { name: "a model that answers \"ok\"", make: || scripted("ok") },
    Writer {
        name: "a model that repeats itself",
        make: || scripted(&"I look at the code, and I go on with it. ".repeat(100)),
    },
    Writer {
        name: "a model that does not stop",
        make: || Arc::new(ScriptedModel::repeating([Scripted::Inflates])),
    },
];

/// The writer of strategies that call no model.
pub(crate) const ALONE: Writer = Writer { name: "no model", make: || Arc::new(ExtractiveModel) };

fn scripted(answer: &str) -> Arc<dyn Model> {
    Arc::new(ScriptedModel::new(vec![answer; 400]))
}
