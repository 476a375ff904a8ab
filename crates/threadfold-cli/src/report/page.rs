//! The page: a sentence about the thread, figures, a table, and a card for each compaction.

use threadfold::{
    EventLog,
    retention::{FactClass, Retention},
};
use threadfold_terminal::{counted, thousands};

use super::{
    card::{self, outcome, percent},
    chart::{self, Frame, Small},
    escape::{escaped, line, short},
    story::{Compaction, Done, Outcome, Story},
};
use crate::words::minute;

const STYLE: &str = include_str!("style.css");

/// The maximum bytes of a page, whatever the log.
pub const MAX_BYTES: usize = 1_000_000;

/// The maximum bytes of its cards and of its rows.
const MAX_CARDS: usize = MAX_BYTES * 7 / 10;
const MAX_ROWS: usize = MAX_BYTES / 8;

/// The maximum number of compactions that are drawn. If there are more, the latest.
const MAX_DRAWN: usize = 150;

/// Returns the page about a log, for a model with a window of this many tokens.
pub fn page(log: &EventLog, window: Option<u64>) -> String {
    written(log, window, "")
}

/// Returns the page about a log with a link to the list of all threads, which is at this address.
pub(crate) fn page_of_list(log: &EventLog, window: Option<u64>, list: &str) -> String {
    let link = format!("<nav><a href=\"{}\">All threads</a></nav>\n", escaped(list));
    written(log, window, &link)
}

fn written(log: &EventLog, window: Option<u64>, nav: &str) -> String {
    let mut story = Story::of(log, window);
    let all = story.compactions.len();
    let head = head(&story);
    let (rows, cards) = (rows(&story), cards(&story));
    let early = all.saturating_sub(MAX_DRAWN);
    story.compactions.drain(..early);
    let figures = figures(&story, early);
    let title = format!("Compactions of {}", line(story.thread, 80));
    let foot = foot();
    document(&title, "", &format!("{nav}{head}{figures}{rows}{cards}{foot}"))
}

/// Returns a page with this title and this content, both of them HTML. `style` is what it has besides
/// the style of all pages. It runs no script and fetches nothing.
pub(crate) fn document(title: &str, style: &str, main: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n\
         <title>{title}</title>\n<style>\n{STYLE}{style}</style>\n</head>\n<body>\n<main>\n{main}</main>\n\
         </body>\n</html>\n"
    )
}

/// Returns a sentence about the thread, and the numbers that it has.
fn head(story: &Story<'_>) -> String {
    let tiles: String = tiles(story)
        .into_iter()
        .map(|(name, value, note)| {
            format!("<div><dt>{name}</dt><dd><b>{value}</b><span>{note}</span></dd></div>")
        })
        .collect();
    let time = story.times.map_or(String::new(), |(from, to)| {
        let (from, to) = (minute(from), minute(to));
        if from == to { format!(" · {from}") } else { format!(" · {from} to {to}") }
    });
    let words = match story.words.as_str() {
        "" => String::new(),
        words => format!(
            "<p class=\"lead\">It begins with: <q class=\"said\">{}</q></p>\n",
            line(words, 160)
        ),
    };
    format!(
        "<header>\n<p class=\"over\"><bdi>{}</bdi>{time}</p>\n\
         <h1>{}</h1>\n{words}<dl class=\"tiles\">{tiles}</dl>\n</header>\n",
        line(story.thread, 80),
        sentence(story)
    )
}

fn sentence(story: &Story<'_>) -> String {
    let (done, _, failed) = counts(story);
    let thread = match story.turns as u64 {
        0 => "This thread".to_owned(),
        turns => format!("In {} this thread", counted(turns, "turn")),
    };
    let times = match (done, failed) {
        (0, 0) => return format!("{thread} was never compacted."),
        (0, 1) => {
            return format!("{thread} was never compacted; one attempt came to nothing.");
        }
        (0, failed) => {
            return format!(
                "{thread} was never compacted; {} attempts came to nothing.",
                thousands(failed)
            );
        }
        (1, _) => "once".to_owned(),
        (done, _) => format!("{} times", thousands(done)),
    };
    let cost = match story.spent.compaction.context_tokens() {
        0 => "it cost none".to_owned(),
        spent => format!("{} were spent on it", short(spent)),
    };
    format!("{thread} was compacted <em>{times}</em>. It freed {} tokens; {cost}.", freed(story))
}

/// The name, the value and the explanation of each number. Numbers that would say nothing are left out.
fn tiles(story: &Story<'_>) -> Vec<(&'static str, String, String)> {
    let (done, undone, failed) = counts(story);
    let mut tiles = Vec::new();
    if done + failed > 0 {
        let note = match (failed, undone) {
            (0, 0) => "all of them stand".to_owned(),
            (failed, 0) => format!("{} came to nothing", thousands(failed)),
            (0, undone) => format!("{} taken back", thousands(undone)),
            (failed, undone) => {
                format!("{} came to nothing, {} taken back", thousands(failed), thousands(undone))
            }
        };
        tiles.push(("compactions", thousands(done), note));
    }
    if done > 0 {
        tiles.push(("tokens freed", freed(story), "summed over all that stand".to_owned()));
    }
    let spent = story.spent.compaction.context_tokens();
    let all = story.spent.total().context_tokens();
    if done + failed > 0 {
        let note = match spent {
            0 => "no model was asked".to_owned(),
            // The log of a proxy has no usage of the agent.
            spent if spent == all => "by the models that summarised".to_owned(),
            spent => format!("{}\u{a0}% of {} in all", percent(spent, all), short(all)),
        };
        tiles.push(("tokens spent", short(spent), note));
    }
    let standing = story.done().filter(|(_, done)| done.undone.is_none()).last();
    if let Some(kept) = standing.and_then(|(_, done)| done.kept()) {
        let note = "of the weight of all facts, at the last".to_owned();
        tiles.push(("kept", format!("{kept}\u{a0}%"), note));
    }
    let (left, tokens) = story.left;
    let note =
        format!("{} of {} said", counted(left as u64, "message"), thousands(story.said as u64));
    tiles.push(("tokens in the context now", short(tokens), note));
    tiles
}

/// The tokens that the compactions removed, in short form.
fn freed(story: &Story<'_>) -> String {
    let freed = story.freed();
    format!("{}{}", if freed < 0 { "−" } else { "" }, short(freed.unsigned_abs()))
}

/// Returns how many compactions were carried out, how many of these were undone, and how many
/// failed.
fn counts(story: &Story<'_>) -> (u64, u64, u64) {
    let done = story.done().count() as u64;
    let undone = story.done().filter(|(_, done)| done.undone.is_some()).count() as u64;
    (done, undone, story.compactions.len() as u64 - done)
}

fn figures(story: &Story<'_>, early: usize) -> String {
    if story.sizes.is_empty() {
        return String::new();
    }
    let note = match early {
        0 => String::new(),
        1 => "<p class=\"note\">The figures leave out the first compaction.</p>".to_owned(),
        early => format!(
            "<p class=\"note\">The figures leave out the first {} compactions.</p>",
            thousands(early as u64)
        ),
    };
    let mut figures = format!(
        "<section>\n<h2>How full the context was</h2>\n{}\n<figure>{}{}</figure>\n{note}</section>\n",
        legend(story),
        chart::context(story, &Frame::WIDE),
        chart::context(story, &Frame::NARROW)
    );
    let smalls = smalls(story);
    let smalls: String =
        smalls.iter().filter(|small| small.says_something()).map(Small::figure).collect();
    // A single compaction is told by its card.
    if story.compactions.len() > 1 && !smalls.is_empty() {
        figures.push_str(&format!(
            "<section>\n<h2>What each compaction did</h2>\n\
             <p class=\"lead\">One value for each compaction, the first on the left. What is kept is measured by \
             its words: of everything that was ever said, how much of the weight the thread still says.</p>\n\
             <div class=\"smalls\">{smalls}</div>\n</section>\n"
        ));
    }
    figures
}

/// The signs of the large figure that occur in it.
fn legend(story: &Story<'_>) -> String {
    let (done, undone, failed) = counts(story);
    let window = match story.window {
        Some(_) => "<li><i class=\"key window\"></i>window of the model</li>",
        None => "<li>the window of the model is not known</li>",
    };
    let signs = [
        (done > undone, "<li><i class=\"key mark\"></i>compacted</li>"),
        (undone > 0, "<li><i class=\"key undone\"></i>taken back</li>"),
        (failed > 0, "<li><i class=\"key failed\"></i>came to nothing</li>"),
    ];
    let signs: String =
        signs.into_iter().filter(|(occurs, _)| *occurs).map(|(_, sign)| sign).collect();
    format!(
        "<ul class=\"legend\"><li><i class=\"key line\"></i>context, as estimated</li>{window}{signs}</ul>"
    )
}

fn smalls(story: &Story<'_>) -> Vec<Small<'static>> {
    let bars = |title, value: &dyn Fn(&Compaction<'_>) -> Option<u64>| {
        let values = story.compactions.iter().map(|one| (one.id.0, value(one)));
        let values: Vec<_> = values.collect();
        let sum = values.iter().filter_map(|(_, value)| *value).fold(0, u64::saturating_add);
        Small { title, total: format!("{} in all", short(sum)), values, percent: false }
    };
    let of = |title, recall: &dyn Fn(&Retention) -> Option<u64>| {
        let values =
            story.done().map(|(one, done)| (one.id.0, done.retention.as_ref().and_then(recall)));
        let values: Vec<_> = values.collect();
        let last = values.iter().rev().find_map(|(_, value)| *value);
        let total = last.map_or("no figure".into(), |last| format!("{last}\u{a0}% at the last"));
        Small { title, total, values, percent: true }
    };
    let class = |title, class| {
        let stated = move |retention: &Retention| {
            let recall = retention.classes.get(&class).filter(|recall| recall.facts > 0)?;
            Some(recall.weight_percent())
        };
        of(title, &stated)
    };
    let done = |one: &Compaction<'_>, value: &dyn Fn(&Done<'_>) -> u64| match &one.outcome {
        Outcome::Done(done) => Some(value(done)),
        Outcome::Failed { .. } | Outcome::LeftOut => None,
    };
    vec![
        bars("Tokens freed", &|one| {
            done(one, &|done| u64::try_from(done.report.tokens_saved()).unwrap_or(0))
        }),
        bars("Tokens spent", &|one| Some(one.usage.context_tokens())),
        bars("Bytes of summary", &|one| done(one, &|done| done.report.summary_bytes)),
        of("Everything kept", &|retention| Some(retention.overall.weight_percent())),
        class("Paths kept", FactClass::Path),
        class("Commands kept", FactClass::Command),
        class("Errors kept", FactClass::Error),
    ]
}

fn rows(story: &Story<'_>) -> String {
    if story.compactions.is_empty() {
        return String::new();
    }
    let mut body = String::new();
    let mut left = 0;
    // If not all rows fit, the latest are shown.
    for compaction in story.compactions.iter().rev() {
        if body.len() < MAX_ROWS { body.push_str(&row(compaction)) } else { left += 1 }
    }
    let note = match left {
        0 => String::new(),
        1 => "<p class=\"note\">One earlier is left out.</p>".to_owned(),
        left => format!("<p class=\"note\">{} earlier ones are left out.</p>", thousands(left)),
    };
    format!(
        "<section>\n<h2>All of them, the latest first</h2>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"All compactions\"><table>\n<thead><tr><th>№</th><th>turn</th>\
         <th>why</th><th>strategy</th><th class=\"n\">before</th><th class=\"n\">after</th>\
         <th class=\"n\">kept</th><th class=\"n\">spent</th><th>outcome</th></tr></thead>\n\
         <tbody>\n{body}</tbody></table></div>\n{note}</section>\n"
    )
}

fn row(compaction: &Compaction<'_>) -> String {
    let Compaction { id, turn, reason, strategy, usage, .. } = compaction;
    let (before, after, kept) = match &compaction.outcome {
        Outcome::Done(done) => (
            thousands(done.report.before.tokens),
            thousands(done.report.after.tokens),
            done.kept().map_or("–".into(), |kept| format!("{kept}\u{a0}%")),
        ),
        Outcome::Failed { .. } | Outcome::LeftOut => {
            (thousands(compaction.tokens), "–".into(), "–".into())
        }
    };
    let spent = usage.context_tokens();
    format!(
        "<tr><td><a href=\"#c{id}\">{id}</a></td><td>{turn}</td><td>{}</td><td>{}</td><td class=\"n\">{before}</td>\
         <td class=\"n\">{after}</td><td class=\"n\">{kept}</td><td class=\"n\">{}</td><td>{}</td></tr>\n",
        reason.as_str().replace('_', " "),
        line(strategy, 40),
        thousands(spent),
        outcome(compaction)
    )
}

fn cards(story: &Story<'_>) -> String {
    if story.compactions.is_empty() {
        return String::new();
    }
    let (mut body, mut left) = (String::new(), 0);
    for compaction in story.compactions.iter().rev() {
        let card = card::card(compaction);
        if left == 0 && body.len() + card.len() < MAX_CARDS {
            body.push_str(&card)
        } else {
            left += 1
        }
    }
    let note = match left {
        0 => String::new(),
        left => format!(
            "<p class=\"note\">{} only in the table: a page with all of them would be too large.</p>",
            if left == 1 {
                "The earliest is".into()
            } else {
                format!("The {} earliest are", thousands(left))
            }
        ),
    };
    format!("<section>\n<h2>One by one</h2>\n{body}{note}</section>\n")
}

fn foot() -> String {
    let text = "Tokens are estimates of four bytes or less each, but for those spent, which providers reported. \
        Facts are looked for by their words, so what a summary says in other words counts as lost. \
        Texts are shown as they are; signs that are not seen are named.";
    format!("<footer><p>{}</p></footer>\n", escaped(text))
}
