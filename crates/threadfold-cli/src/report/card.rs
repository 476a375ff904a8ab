//! One compaction: what was removed and kept, the summary, the kept and missing facts, and the
//! cost.

use std::fmt::Write;

use threadfold::{ContentBlock, Message, Role, log::Rung};
use threadfold_terminal::{counted, thousands};

use super::{
    escape::{escaped, folded, line, short},
    story::{Compaction, Done, Mix, Outcome},
};

/// The number of characters of a summary that are visible, and the maximum when it is unfolded.
const SHOWN: usize = 700;
const MAX: usize = 3_000;

/// The maximum number of removed messages that are listed.
const LISTED: usize = 40;

pub(super) fn card(compaction: &Compaction<'_>) -> String {
    let Compaction { id, turn, at, reason, strategy, .. } = compaction;
    let state = match &compaction.outcome {
        Outcome::Done(done) if done.undone.is_none() => "stands",
        Outcome::Done(_) => "undone",
        Outcome::Failed { .. } | Outcome::LeftOut => "failed",
    };
    let body = match &compaction.outcome {
        Outcome::Done(done) => done_body(done),
        Outcome::Failed { error } => format!(
            "<p class=\"error\">{}</p><p class=\"lead\">The thread stayed as it was.</p>",
            escaped(super::escape::divided(error, 1_000).0)
        ),
        Outcome::LeftOut => {
            "<p class=\"lead\">The log holds its plan, and a replay cannot carry it out.</p>"
                .to_owned()
        }
    };
    let instructions = reason.instructions().map_or(String::new(), |instructions| {
        format!(
            "<p class=\"lead\">Asked to attend to: <q class=\"said\">{}</q></p>",
            line(instructions, 200)
        )
    });
    format!(
        "<article id=\"c{id}\" class=\"{state}\">\n<h3><span class=\"id\">{id}</span> {} <span class=\"chip\">{}</span></h3>\n\
         <p class=\"over\">turn {turn} · {at} · {}</p>\n{instructions}{body}{}</article>\n",
        line(strategy, 60),
        outcome(compaction),
        reason.as_str().replace('_', " "),
        cost(compaction)
    )
}

fn done_body(done: &Done<'_>) -> String {
    format!(
        "{}<div class=\"pair\"><div>{}</div><div>{}{}</div></div>{}{}",
        sizes(done),
        recall(done),
        missing(done),
        invented(done),
        summaries(done),
        gone(&done.gone)
    )
}

/// Returns bars of the thread's parts before and after, on one scale.
fn sizes(done: &Done<'_>) -> String {
    let most = done.before.total().max(done.after.total()).max(1);
    let (before, after) = (done.report.before, done.report.after);
    let row = |name: &str, mix: Mix, tokens: u64, messages: usize| {
        format!(
            "<div class=\"size\"><span>{name}</span>{}<span><b>{}</b> tokens, {}</span></div>",
            stack(mix, most),
            thousands(tokens),
            counted(messages as u64, "message")
        )
    };
    let saved = done.report.tokens_saved();
    let word = if saved < 0 { "more" } else { "less" };
    format!(
        "{}{}<p class=\"legend small\"><i class=\"key p1\"></i>user <i class=\"key p2\"></i>assistant \
         <i class=\"key p3\"></i>tools <i class=\"key p4\"></i>summaries \
         <span class=\"note\">{} tokens {word} ({}\u{a0}%); {} of the user {}</span></p>",
        row("before", done.before, before.tokens, before.messages),
        row("after", done.after, after.tokens, after.messages),
        thousands(saved.unsigned_abs()),
        percent(saved.unsigned_abs(), before.tokens),
        counted(done.report.user_messages_preserved as u64, "message"),
        if done.report.user_messages_preserved == 1 { "stays" } else { "stay" }
    )
}

fn stack(mix: Mix, most: u64) -> String {
    let mut svg = String::from(
        "<svg viewBox=\"0 0 400 12\" preserveAspectRatio=\"none\" aria-hidden=\"true\">",
    );
    let mut at = 0.0;
    let parts = [("p1", mix.user), ("p2", mix.assistant), ("p3", mix.tools), ("p4", mix.summaries)];
    for (class, tokens) in parts.into_iter().filter(|(_, tokens)| *tokens > 0) {
        let width = 400.0 * tokens as f64 / most as f64;
        let _ = write!(
            svg,
            "<rect class=\"{class}\" x=\"{at:.1}\" y=\"0\" width=\"{width:.1}\" height=\"12\"/>"
        );
        at += width;
    }
    svg.push_str("</svg>");
    svg
}

fn recall(done: &Done<'_>) -> String {
    let Some(retention) = &done.retention else {
        return "<h4>Kept</h4><p class=\"lead\">The log does not say.</p>".to_owned();
    };
    let classes = retention.classes.iter().map(|(class, recall)| (class.as_str(), recall));
    let rows: String = classes
        .chain([("everything", &retention.overall)])
        .map(|(name, recall)| {
            let percent = recall.weight_percent();
            format!(
                "<tr><th>{name}</th><td><svg viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
                 <rect class=\"track\" x=\"0\" y=\"0\" width=\"100\" height=\"8\"/>\
                 <rect class=\"bar\" x=\"0\" y=\"0\" width=\"{}\" height=\"8\"/></svg></td>\
                 <td class=\"n\">{percent}\u{a0}%</td><td class=\"n note\">{} of {}</td></tr>",
                percent.min(100),
                thousands(recall.kept),
                thousands(recall.facts)
            )
        })
        .collect();
    let worked_out = match done.worked_out {
        true => {
            "<p class=\"note\">The log does not have this; it was worked out for this page.</p>"
        }
        false => "",
    };
    format!(
        "<h4>Kept of everything ever said, by weight</h4><table class=\"recall\"><tbody>{rows}</tbody></table>{worked_out}"
    )
}

fn missing(done: &Done<'_>) -> String {
    let Some(retention) = &done.retention else { return String::new() };
    let missing = &retention.missing;
    if missing.is_empty() {
        return "<h4>Missing</h4><p class=\"lead\">Nothing.</p>".to_owned();
    }
    let items: String = missing
        .iter()
        .take(12)
        .map(|fact| {
            format!(
                "<li><span class=\"tag\">{}</span><bdi class=\"said\">{}</bdi></li>",
                fact.class,
                line(&fact.text, 160)
            )
        })
        .collect();
    let lost = retention.overall.facts.saturating_sub(retention.overall.kept);
    let note = match lost.saturating_sub(missing.len().min(12) as u64) {
        0 => String::new(),
        1 => "<p class=\"note\">and a lighter one</p>".to_owned(),
        more => format!("<p class=\"note\">and {} lighter ones</p>", thousands(more)),
    };
    format!("<h4>Missing, what weighs most first</h4><ul class=\"missing\">{items}</ul>{note}")
}

/// Lists the facts that the summary invented.
fn invented(done: &Done<'_>) -> String {
    let facts = done.retention.iter().flat_map(|retention| &retention.invented);
    let items: String = facts
        .map(|fact| {
            let (class, text) = (fact.class, line(&fact.text, 160));
            format!("<li><span class=\"tag\">{class}</span><bdi class=\"said\">{text}</bdi></li>")
        })
        .collect();
    match items.as_str() {
        "" => String::new(),
        items => {
            format!(
                "<h4>In the summary, and stated by no message</h4><ul class=\"missing\">{items}</ul>"
            )
        }
    }
}

fn summaries(done: &Done<'_>) -> String {
    if done.summaries.is_empty() {
        return "<h4>Summary</h4><p class=\"lead\">No summary replaced what was removed.</p>"
            .to_owned();
    }
    let texts = done.summaries.iter().take(6).map(|text| folded(text, SHOWN, MAX));
    let more = done.summaries.len().saturating_sub(6);
    let note =
        if more > 0 { format!("<p class=\"note\">and {more} more</p>") } else { String::new() };
    format!("<h4>The summary it added</h4>{}{note}", texts.collect::<String>())
}

fn gone(messages: &[Message]) -> String {
    if messages.is_empty() {
        return String::new();
    }
    let items: String = messages.iter().take(LISTED).map(item).collect();
    let more = messages.len().saturating_sub(LISTED);
    let note = if more > 0 {
        format!("<p class=\"note\">and {} more</p>", thousands(more as u64))
    } else {
        String::new()
    };
    let were = if messages.len() == 1 { "was" } else { "were" };
    format!(
        "<details><summary>{} {were} taken out or shortened</summary><ul class=\"gone\">{items}</ul>{note}</details>",
        counted(messages.len() as u64, "message")
    )
}

fn item(message: &Message) -> String {
    let who = match message.role {
        _ if message.is_summary() => "summary",
        _ if message.tool_results().next().is_some() => "results",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::System => "system",
    };
    let text = message.content.iter().find_map(|block| match block {
        ContentBlock::ToolUse(call) => Some(format!("{} {}", call.name, call.input.as_str())),
        ContentBlock::ToolResult(result) => {
            result.content.iter().find_map(ContentBlock::as_text).map(ToString::to_string)
        }
        ContentBlock::Summary(summary) => Some(summary.text.to_string()),
        block => block.as_text().map(ToString::to_string),
    });
    format!(
        "<li><span class=\"tag\">{who}</span><bdi class=\"said\">{}</bdi></li>",
        line(text.as_deref().unwrap_or("nothing that is text"), 140)
    )
}

/// Lists the tokens that the compaction spent.
fn cost(compaction: &Compaction<'_>) -> String {
    let usage = compaction.usage;
    let rungs: String = compaction.rungs.iter().take(12).map(rung).collect();
    let rungs = if rungs.is_empty() { rungs } else { format!("<ul class=\"rungs\">{rungs}</ul>") };
    let spent = match usage.is_zero() {
        true => "It cost no tokens.".to_owned(),
        false => format!(
            "It cost {} tokens: {} asked, {} of these from the cache, and {} answered.",
            thousands(usage.context_tokens()),
            thousands(usage.input),
            thousands(usage.cache_read),
            thousands(usage.output)
        ),
    };
    let more = match &compaction.outcome {
        Outcome::Done(done) => format!("{}{}{}", expected(done), since(done), notes(done)),
        Outcome::Failed { .. } | Outcome::LeftOut => String::new(),
    };
    format!("<p class=\"cost\">{spent}{more}</p>{rungs}\n")
}

/// Returns the expected cost and saving, if the host named prices.
fn expected(done: &Done<'_>) -> String {
    let Some(cost) = &done.report.cost else { return String::new() };
    let money = |micros: i64| format!("{:.4}", micros as f64 / 1e6);
    let paid = match cost.pays_after {
        Some(requests) => format!("it has paid for itself after {}", counted(requests, "request")),
        None => "it never pays for itself".to_owned(),
    };
    format!(
        " By the prices of its model it was expected to bill {} tokens again and to cost {} once, \
         and to save {} with every request after that; {paid}.",
        thousands(cost.tokens_rebilled),
        money(cost.model_calls.saturating_add(cost.rebill)),
        money(cost.saved_per_request)
    )
}

/// Returns the saving by the usage that the provider reported since.
fn since(done: &Done<'_>) -> String {
    let Some(gain) = done.since.filter(|gain| gain.answers > 0) else { return String::new() };
    format!(
        " For the {} until the next one the provider reported prompts of {} tokens: {} read \
         from its cache and {} written to it. Without the compaction they would have had {}.",
        counted(gain.answers, "answer"),
        thousands(gain.reported.input),
        thousands(gain.reported.cache_read),
        thousands(gain.reported.cache_write),
        thousands(gain.otherwise.input)
    )
}

fn notes(done: &Done<'_>) -> String {
    done.report.notes.iter().take(6).map(|note| format!(" {}", line(note, 240))).collect()
}

fn rung(rung: &Rung) -> String {
    let end = match &rung.failure {
        Some(failure) => format!("✗ {}", line(failure, 160)),
        None => "✓ succeeded".to_owned(),
    };
    format!(
        "<li><b>{}</b> {end}, {} tokens</li>",
        line(&rung.strategy, 40),
        short(rung.usage.context_tokens())
    )
}

/// Returns in a few words how a compaction ended.
pub(super) fn outcome(compaction: &Compaction<'_>) -> String {
    match &compaction.outcome {
        Outcome::Done(done) => match done.undone {
            None => "compacted".to_owned(),
            Some(turn) => format!("taken back in turn {turn}"),
        },
        Outcome::Failed { error } => format!("came to nothing: {}", line(error, 60)),
        Outcome::LeftOut => "left out: its plan does not fit the log".to_owned(),
    }
}

pub(super) fn percent(part: u64, whole: u64) -> u64 {
    part.saturating_mul(100).checked_div(whole).unwrap_or(0)
}
