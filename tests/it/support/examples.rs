//! Modules of the examples, for their tests.

#[path = "../../../examples/cost/mod.rs"]
#[expect(dead_code, reason = "the example shows more than tests ask")]
pub(crate) mod cost;
#[path = "../../../examples/ollama/mod.rs"]
pub(crate) mod ollama;
#[path = "../../../examples/simulation/mod.rs"]
pub(crate) mod simulation;
#[path = "../../../examples/retention/threads.rs"]
pub(crate) mod threads;
#[path = "../../../examples/retention/trial.rs"]
#[expect(dead_code, reason = "the example shows more than tests ask")]
pub(crate) mod trial;
#[path = "../../../examples/retention/writers.rs"]
#[expect(dead_code, reason = "the example shows more than tests ask")]
pub(crate) mod writers;
