//! The table, for a terminal or as Markdown.

use std::collections::BTreeMap;

use threadfold::retention::RetentionPolicy;
use threadfold_terminal::{Style, first_line, thousands};

use crate::{
    threads::Recorded,
    trial::{ASKED, CLASSES, Round},
};

/// The compactions after which the recall is shown, from 0.
const TOLD: [usize; 3] = [0, 2, 4];

/// The results of a strategy with one writer.
pub(crate) struct Row {
    pub(crate) writer: &'static str,
    pub(crate) strategy: String,
    pub(crate) addendum: bool,
    pub(crate) rounds: Vec<Round>,
}

pub(crate) struct Table<'a> {
    pub(crate) style: Style,
    pub(crate) threads: &'a [Recorded],
    pub(crate) policy: &'a RetentionPolicy,
    pub(crate) rows: Vec<Row>,
}

impl Table<'_> {
    pub(crate) fn print(&self) {
        let style = self.style;
        println!("{}", style.heading("What summaries lose"));
        println!("{}", self.preface());
        self.head();
        let mut writer = "";
        for row in &self.rows {
            if row.writer != writer {
                writer = row.writer;
                println!("\n{}", style.bold(writer));
            }
            self.row(row);
        }
        self.reasons();
        self.verdict();
    }

    fn preface(&self) -> String {
        let messages: usize = self.threads.iter().map(|thread| thread.messages.len()).sum();
        let names: Vec<&str> = self.threads.iter().map(|thread| thread.name.as_str()).collect();
        let said = self.rows.first().and_then(Row::last).map_or(0, |round| round.said);
        format!(
            "{} threads of {} messages and about {} tokens: {}.\n\
             Each thread comes in five parts. After each part it is compacted to half of its size. What\n\
             the user typed last always stays.\n\
             The numbers are percent of the weight of all facts that the thread still states after\n\
             one, three and five compactions. The addendum has up to {} tokens. The models of\n\
             all compactions read and wrote so many tokens.",
            self.threads.len(),
            thousands(messages as u64),
            thousands(said),
            names.join(", "),
            thousands(self.policy.addendum_tokens),
        )
    }

    fn head(&self) {
        let classes = ["paths", "commands", "errors", "everything"];
        let classes: String = classes.iter().map(|name| format!("  {name:>11}")).collect();
        let rounds: String = CLASSES.iter().map(|_| "    1   3   5").collect();
        println!(
            "\n{}",
            self.style.bold(format!(
                "{:<19} {:>8} {:>6} {:>6} {:>11} {:>9}{classes}",
                "strategy", "addendum", "target", "tokens", "models", "models"
            ))
        );
        println!(
            "{}",
            self.style.dim(format!(
                "{:<19} {:>8} {:>6} {:>6} {:>11} {:>9}{rounds}",
                "", "", "met", "saved", "read", "wrote"
            ))
        );
    }

    fn row(&self, row: &Row) {
        let Some(last) = row.last() else { return };
        let (met, of) = last.met;
        let whole = met == of;
        let met = format!("{:>6}", format!("{met}/{of}"));
        let met = if whole { self.style.green(met) } else { self.style.red(met) };
        let name = if row.addendum { String::new() } else { row.strategy.clone() };
        let addendum = if row.addendum { "with" } else { "without" };
        print!(
            "{} {addendum:>8} {met} {:>5}% {:>11} {:>9}",
            self.style.cyan(format!("{name:<19}")),
            last.saved(),
            thousands(last.billed.input),
            thousands(last.billed.output)
        );
        for (at, asked) in ASKED.iter().enumerate() {
            print!(" ");
            for round in TOLD {
                let percent = row.percent(round, at);
                let text = percent.map_or("  –".into(), |percent| format!("{percent:>3}"));
                // A thread that was not compacted lost nothing, so its number is dimmed.
                let text = match percent {
                    _ if !whole => self.style.dim(text),
                    Some(percent) if percent >= asked.unwrap_or(80) => self.style.green(text),
                    Some(0..40) => self.style.red(text),
                    _ => text,
                };
                print!(" {text}");
            }
        }
        println!();
    }

    /// Prints the reasons of failed compactions, once each.
    fn reasons(&self) {
        let mut reasons: BTreeMap<(String, &str), usize> = BTreeMap::new();
        for row in &self.rows {
            for failure in row.last().iter().flat_map(|round| &round.failures) {
                *reasons.entry((row.strategy.clone(), shape(failure))).or_default() += 1;
            }
        }
        if reasons.is_empty() {
            return;
        }
        println!("{}", self.style.heading("Compactions that came to nothing"));
        println!("The thread stayed as it was, so it lost nothing and met no target.\n");
        for ((strategy, reason), count) in reasons {
            let reason = first_line(reason, 90);
            println!(
                "{} {count:>4} x  {}",
                self.style.cyan(format!("{strategy:<19}")),
                self.style.dim(reason)
            );
        }
    }

    /// Prints whether the default strategy with its addendum keeps the required shares.
    fn verdict(&self) {
        println!("{}", self.style.heading("The ladder with its addendum, after five compactions"));
        println!("Asked: 80 % of paths, commands and errors, every target met.\n");
        for row in self.rows.iter().filter(|row| row.addendum && row.strategy == "ladder") {
            let Some(last) = row.last() else { continue };
            let holds = last.holds();
            let mark = if holds { self.style.green("✓") } else { self.style.red("✗") };
            let percents =
                last.percents().map(|percent| percent.map_or("–".into(), |p| p.to_string()));
            let [paths, commands, errors, _] = percents;
            println!(
                "{mark} {:<30} paths {paths:>3}  commands {commands:>3}  errors {errors:>3}  targets {}/{}",
                row.writer, last.met.0, last.met.1
            );
            let made = last.made_by.iter().map(|(name, count)| format!("{name} {count}"));
            let made = made.collect::<Vec<_>>().join(", ");
            println!("  {}", self.style.dim(format!("plans by: {made}")));
        }
    }

    pub(crate) fn markdown(&self) {
        println!(
            "| summaries by | strategy | addendum | targets met | tokens saved | paths | commands | errors | everything |"
        );
        println!("|---|---|---|---:|---:|---:|---:|---:|---:|---:|");
        for row in &self.rows {
            let Some(last) = row.last() else { continue };
            let addendum = if row.addendum { "with" } else { "without" };
            print!(
                "| {} | `{}` | {addendum} | {}/{} | {} % |",
                row.writer,
                row.strategy,
                last.met.0,
                last.met.1,
                last.saved()
            );
            for at in 0..CLASSES.len() {
                let cell = TOLD
                    .map(|round| row.percent(round, at).map_or("–".into(), |p| p.to_string()));
                print!(" {} |", cell.join(" · "));
            }
            println!();
        }
    }
}

impl Row {
    fn last(&self) -> Option<&Round> {
        self.rounds.last()
    }

    fn percent(&self, round: usize, class: usize) -> Option<u64> {
        *self.rounds.get(round)?.percents().get(class)?
    }
}

/// Returns a reason without the numbers that differ between threads.
fn shape(reason: &str) -> &str {
    let end = reason.find(|c: char| c.is_ascii_digit()).unwrap_or(reason.len());
    reason.get(..end).unwrap_or(reason).trim_end()
}
