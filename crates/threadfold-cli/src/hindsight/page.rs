//! The page of `hindsight`: what each strategy keeps at each size, and what is gone.

use std::fmt::Write;

use threadfold_terminal::counted;

use super::table::{Row, TAIL, Table, percent};
use crate::report::{document, escaped};

const OWN_STYLE: &str = "svg .s0{stroke:#8d979b;stroke-dasharray:4 4}svg .s1{stroke:#0b7285}svg .s2{stroke:#c2410c}\
    svg .s3{stroke:#6d28d9}svg .s4{stroke:#15803d}svg .s5{stroke:#475569}svg .s6{stroke:#be185d}\
    svg .series{fill:none;stroke-width:2}svg .dot{fill:var(--paper);stroke-width:2}\
    details{margin:.5rem 0}summary{cursor:pointer}code{overflow-wrap:anywhere}td b{font-weight:600}\
    .legend svg{width:1.6rem;height:.6rem;display:inline-block;margin-right:.4rem}\
    @media(prefers-color-scheme:dark){svg .s0{stroke:#98a2a6}svg .s1{stroke:#4cc3d9}svg .s2{stroke:#fb923c}\
    svg .s3{stroke:#c4b5fd}svg .s4{stroke:#86efac}svg .s5{stroke:#cbd5e1}svg .s6{stroke:#f9a8d4}}\
    @media(max-width:44rem){td .note{display:block}}";

/// The number of colours. Further strategies are in the table only.
const COLOURS: usize = 7;

/// How many names that are gone are quoted for a thread and a strategy.
const QUOTED: usize = 40;

/// How many threads are shown one by one, with the most losses first.
const THREADS: usize = 60;

/// The classes and the width of the chart, in units of its view box: for a desk, and for a hand, where its
/// texts are as large as those of the page.
const WIDE: (&str, f64) = ("context", 720.0);
const NARROW: (&str, f64) = ("context narrow", 360.0);

const HEIGHT: f64 = 320.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 10.0;
const BOTTOM: f64 = 34.0;
const TOP: f64 = 10.0;

pub(super) fn page(tables: &[Table<'_>]) -> String {
    let mut body = String::new();
    for table in tables {
        let _ = write!(body, "<h2>{}</h2>", escaped(&table.title));
        body.push_str(&figure(table));
        body.push_str(&grid(table));
    }
    body.push_str(&losses(tables));
    let cuts = counted(tables.first().map_or(0, |table| table.cuts) as u64, "cut");
    let main = format!(
        "<h1>{}</h1>\n<p class=\"lead\">Each thread is cut, what is before the cut is compacted, and the result is \
         searched for the paths, identifiers and numbers that the agent used after the cut and had from before it: \
         {cuts}. No model judged anything.</p>\n{body}",
        headline(tables)
    );
    document("What the agent needed next", OWN_STYLE, &main)
}

/// What the best strategy keeps, and what the newest messages alone keep, at a size near 30 %.
fn headline(tables: &[Table<'_>]) -> String {
    let Some(table) = tables.first() else { return "What the agent needed next".into() };
    let near = |share: &&f64| ((**share - 0.3).abs() * 1_000.0) as u64;
    let Some(share) = table.shares.iter().min_by_key(near) else { return String::new() };
    let kept = |name: &str| table.cell(name, *share).map(|cell| cell.kept);
    let names = table.names.iter().filter(|name| **name != TAIL);
    let best = names.filter_map(|name| kept(name).map(|kept| (name, kept)));
    let best = best.max_by(|one, other| one.1.total_cmp(&other.1));
    match (best, kept(TAIL)) {
        (Some((name, best)), Some(tail)) => format!(
            "At {} of the size, <em>{}</em> keeps {} of what the agent needed next; the newest messages alone keep {}.",
            unbroken(*share),
            escaped(name),
            unbroken(best),
            unbroken(tail)
        ),
        _ => "What the agent needed next".into(),
    }
}

/// A share that no line end divides.
fn unbroken(share: f64) -> String {
    percent(share).replace(' ', "\u{a0}")
}

/// The kept share over the size that was used, in two widths of which the page shows one, with the names
/// of the lines.
fn figure(table: &Table<'_>) -> String {
    let mut legend = String::new();
    for (number, name) in drawn(table) {
        let _ = write!(
            legend,
            "<li><svg viewBox=\"0 0 26 8\" aria-hidden=\"true\"><line class=\"series s{number}\" x1=\"0\" x2=\"26\" \
             y1=\"4\" y2=\"4\"/></svg>{}</li>",
            escaped(name)
        );
    }
    let charts: String = [WIDE, NARROW].iter().map(|room| chart(table, *room)).collect();
    format!(
        "<figure>{charts}<figcaption class=\"note\">Upwards what is kept, to the right the size that was used.\
         </figcaption></figure><ul class=\"legend\">{legend}</ul>"
    )
}

/// The number of the colour and the name of each strategy that has a line: it reaches a target.
fn drawn<'a>(table: &'a Table<'_>) -> impl Iterator<Item = (usize, &'a str)> {
    let reaches = |name: &&str| table.shares.iter().any(|share| table.cell(name, *share).is_some());
    table.names.iter().copied().filter(reaches).enumerate().take(COLOURS)
}

fn chart(table: &Table<'_>, (class, width): (&str, f64)) -> String {
    let most = table.shares.iter().copied().fold(0.1, f64::max) * 1.25;
    let at = |used: f64, kept: f64| {
        let x = LEFT + used.min(most) / most * (width - LEFT - RIGHT);
        (x, TOP + (1.0 - kept) * (HEIGHT - TOP - BOTTOM))
    };
    let mut svg = format!(
        "<svg class=\"{class}\" viewBox=\"0 0 {width} {HEIGHT}\" role=\"img\" aria-label=\"Kept share over the \
         size that was used; the table has the same figures\">"
    );
    for step in 0..=4 {
        let kept = f64::from(step) / 4.0;
        let (x, y) = at(0.0, kept);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            width - RIGHT,
            x - 6.0,
            y + 4.0,
            percent(kept)
        );
    }
    for share in &table.shares {
        let (x, y) = at(*share, 0.0);
        let label = percent(*share);
        let _ = write!(
            svg,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
            y + 18.0
        );
    }
    for (number, name) in drawn(table) {
        let points = table.shares.iter().filter_map(|share| table.cell(name, *share));
        let points: Vec<(f64, f64)> = points.map(|cell| at(cell.used, cell.kept)).collect();
        let line: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let line = line.join(" ");
        let _ = write!(svg, "<polyline class=\"series s{number}\" points=\"{line}\"/>");
        for (x, y) in &points {
            let _ = write!(
                svg,
                "<circle class=\"dot s{number}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"/>"
            );
        }
    }
    svg.push_str("</svg>");
    svg
}

fn grid(table: &Table<'_>) -> String {
    let head: String = table
        .shares
        .iter()
        .map(|share| format!("<th class=\"n\">{}</th>", percent(*share)))
        .collect();
    let rows = table.names.iter().map(|name| {
        let cells = table.shares.iter().map(|share| match table.cell(name, *share) {
            Some(cell) => format!(
                "<td class=\"n\"><b>{}</b> <span class=\"note\">({})</span></td>",
                percent(cell.kept),
                percent(cell.used)
            ),
            None => "<td class=\"n\">–</td>".to_owned(),
        });
        format!("<tr><td>{}</td>{}</tr>", escaped(name), cells.collect::<String>())
    });
    format!(
        "<table><thead><tr><th>target</th>{head}</tr></thead><tbody>{}</tbody></table>\
         <p class=\"note\">Kept of what was needed; in brackets the size that was used; – if most cuts do not reach \
         the target.</p>",
        rows.collect::<String>()
    )
}

/// What is gone of each thread, quoted.
fn losses(tables: &[Table<'_>]) -> String {
    let rows = tables.iter().flat_map(|table| &table.rows).filter(|row| row.strategy != TAIL);
    let mut lossy: Vec<&Row> = rows.filter(|row| !row.gone.is_empty()).copied().collect();
    lossy.sort_by_key(|row| std::cmp::Reverse(row.gone.len()));
    if lossy.is_empty() {
        return "<h2>Gone</h2><p>Nothing that was needed is gone.</p>".into();
    }
    let cards = lossy.iter().take(THREADS).map(|row| {
        let names = row.gone.iter().take(QUOTED);
        let names: Vec<String> =
            names.map(|name| format!("<code>{}</code>", escaped(name))).collect();
        let more = row.gone.len().saturating_sub(QUOTED);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        format!(
            "<details><summary>{} of {} by {} at {}: {}</summary><p>{}{more}</p></details>",
            row.gone.len(),
            row.needed,
            escaped(&row.strategy),
            percent(row.share),
            escaped(&row.file),
            names.join(", ")
        )
    });
    let cards: String = cards.collect();
    format!(
        "<h2>Gone</h2><p class=\"lead\">What was needed and is no longer there, most first.</p>{cards}"
    )
}
