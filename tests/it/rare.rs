//! Compactions are rare: a compaction leaves the thread room to grow, whatever it lists.

use std::sync::Arc;

use serde_json::json;
use threadfold::{
    CompactionStrategy, Message, async_trait,
    message::{ToolSpec, ToolUse},
    model::{Tool, ToolContext, ToolOutput},
    strategy::{Digest, Ladder},
};

use super::promises::provider::Provider;
use crate::support::bench::{calls, say};

const WINDOW: u64 = 16_000;
const TURNS: usize = 500;

/// Returns some lines with a path, a number and a name each, others for every call.
#[derive(Debug)]
struct Grep;

#[async_trait]
impl Tool for Grep {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("grep", "Finds lines.", json!({"type": "object"}))
    }

    async fn call(
        &self,
        call: &ToolUse,
        _: &ToolContext<'_>,
    ) -> Result<ToolOutput, Box<dyn std::error::Error + Send + Sync>> {
        let seed: usize = call.id.trim_start_matches("call_").parse()?;
        let line = |line: usize| {
            let number = seed * 131 + line * 17;
            format!(
                "src/part_{}/file_{number}.rs:{line}: fn handle_{number}(port: u16)\n",
                seed % 40
            )
        };
        Ok(ToolOutput::from((0..80).map(line).collect::<String>()))
    }
}

/// How much the thread grew from each compaction to the next.
fn growths(strategy: Arc<dyn CompactionStrategy>) -> Vec<u64> {
    let provider = Provider::new(|request, place| {
        let last = request.messages.last().unwrap();
        match last.tool_results().next() {
            None => calls(&[(&format!("call_{place}"), "grep", "{}")]),
            Some(_) => Message::assistant(format!("I read what grep found, step {place}.")),
        }
    });
    let mut session =
        provider.session(Some(WINDOW), |builder| builder.strategy(strategy).tool(Arc::new(Grep)));
    for turn in 0..TURNS {
        let rule = if turn % 25 == 0 {
            format!(" Never touch src/kept_{turn}.rs.")
        } else {
            String::new()
        };
        let text = format!("Look for handler {turn} at port {}, please.{rule}", 4_000 + turn);
        say(&mut session, text).unwrap();
    }
    assert_eq!(provider.fault(WINDOW), None);
    let sizes: Vec<_> = session
        .log()
        .standing()
        .map(|record| (record.report.before.tokens, record.report.after.tokens))
        .collect();
    sizes.windows(2).map(|pair| pair[1].0.saturating_sub(pair[0].1)).collect()
}

#[test]
fn five_hundred_turns_with_tools_need_few_compactions() {
    let strategies: [Arc<dyn CompactionStrategy>; 2] =
        [Arc::new(Ladder::default()), Arc::new(Digest::default())];
    for strategy in strategies {
        let name = strategy.name().to_owned();
        let mut growths = growths(strategy);
        growths.sort_unstable();
        let median = growths[growths.len() / 2];
        assert!(growths.len() < 190, "{name}: {} compactions", growths.len() + 1);
        assert!(median >= WINDOW / 4, "{name}: {median} tokens");
        assert!(growths[0] >= WINDOW / 10, "{name}: {} tokens", growths[0]);
    }
}
