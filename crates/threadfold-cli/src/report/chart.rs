//! The figures, as SVG inside the page. Every colour is a class of the page's style.

use std::fmt::Write;

use threadfold_terminal::thousands;

use super::{
    escape::short,
    story::{Compaction, Outcome, Point, Story},
};

/// The maximum number of points of a line. More points than pixels show nothing new.
const MAX_POINTS: usize = 1_200;

/// The maximum number of marks with a number beside them.
const MAX_NAMES: usize = 40;

/// The size of a large figure, in units of its view box, and the room of its lines.
pub(crate) struct Frame {
    class: &'static str,
    width: f64,
    height: f64,
    left: f64,
    right: f64,
    bottom: f64,
    /// How many steps the axes have, about.
    steps: (f64, f64),
    /// Whether the name of the window is at the right of its line, or above it.
    names_at_the_right: bool,
}

const TOP: f64 = 44.0;
/// The lane of compactions that failed or were undone.
const LANE: f64 = 28.0;

impl Frame {
    /// For a page of the width of a desk.
    pub(crate) const WIDE: Self = Self {
        class: "context",
        width: 960.0,
        height: 300.0,
        left: 52.0,
        right: 888.0,
        bottom: 258.0,
        steps: (4.0, 6.0),
        names_at_the_right: true,
    };
    /// For the width of a hand, so that its texts are as large as those of the page.
    pub(crate) const NARROW: Self = Self {
        class: "context narrow",
        width: 360.0,
        height: 300.0,
        left: 44.0,
        right: 352.0,
        bottom: 258.0,
        steps: (4.0, 3.0),
        names_at_the_right: false,
    };
}

/// The size of the context over time, with the window and every compaction.
pub(crate) fn context(story: &Story<'_>, frame: &Frame) -> String {
    let Frame { class, width, height, left, right, bottom, .. } = *frame;
    let largest = story.sizes.iter().map(|point| point.tokens).max().unwrap_or(0);
    let top = story.window.unwrap_or(0).max(largest).max(1);
    // Leaves room for the line of the window.
    let top = top as f64 * if story.window.unwrap_or(0) >= largest { 1.04 } else { 1.1 };
    let said = story.said.max(1) as f64;
    let x = |at: usize| left + (right - left) * at as f64 / said;
    let y = |tokens: u64| bottom - (bottom - TOP) * (tokens as f64 / top).min(1.0);

    let mut svg = format!(
        "<svg class=\"{class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-label=\"Tokens of the context over the messages of the thread\">"
    );
    grid(&mut svg, frame, (top, said), &x, &y);
    let line = path(&thinned(&story.sizes), &x, &y);
    if let (Some(first), Some(last)) = (story.sizes.first(), story.sizes.last()) {
        let (first, last) = (x(first.said), x(last.said));
        let _ = write!(
            svg,
            "<path class=\"area\" d=\"{line} L{last:.1} {bottom} L{first:.1} {bottom} Z\"/>"
        );
        let _ = write!(svg, "<path class=\"line\" d=\"{line}\"/>");
    }
    if let Some(window) = story.window {
        let at = y(window);
        let _ = write!(
            svg,
            "<line class=\"window\" x1=\"{left}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>"
        );
        let _ = match frame.names_at_the_right {
            true => write!(
                svg,
                "<text class=\"label\" x=\"{0:.1}\" y=\"{1:.1}\">window</text>\
                 <text class=\"label\" x=\"{0:.1}\" y=\"{2:.1}\">{3}</text>",
                right + 8.0,
                at - 2.0,
                at + 12.0,
                thousands(window)
            ),
            false => write!(
                svg,
                "<text class=\"label\" x=\"{right}\" y=\"{:.1}\" text-anchor=\"end\">window {}</text>",
                at + 14.0,
                thousands(window)
            ),
        };
    }
    let named = story.compactions.len() <= MAX_NAMES;
    for compaction in &story.compactions {
        mark(&mut svg, compaction, x(compaction.said), y(compaction.tokens), named);
    }
    svg.push_str("</svg>");
    svg
}

fn grid(
    svg: &mut String,
    frame: &Frame,
    (top, said): (f64, f64),
    x: &impl Fn(usize) -> f64,
    y: &impl Fn(u64) -> f64,
) {
    let Frame { left, right, bottom, height, steps, .. } = *frame;
    let step = pleasant(top / steps.0);
    for tokens in (0..).map(|tick| tick * step).take_while(|tokens| *tokens as f64 <= top).take(12)
    {
        let at = y(tokens);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{left}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            left - 8.0,
            at + 4.0,
            short(tokens)
        );
    }
    let step = pleasant(said / steps.1);
    for at in (0..).map(|tick| tick * step).take_while(|at| *at as f64 <= said).take(12) {
        let place = x(usize::try_from(at).unwrap_or(usize::MAX));
        let _ = write!(
            svg,
            "<text class=\"tick\" x=\"{place:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            bottom + 17.0,
            thousands(at)
        );
    }
    let _ = write!(
        svg,
        "<text class=\"axis\" x=\"{left}\" y=\"11\">tokens in the context</text>\
         <text class=\"axis\" x=\"{right}\" y=\"{:.1}\" text-anchor=\"end\">messages said</text>",
        height - 6.0
    );
}

/// Returns a step between ticks: 1, 2 or 5 followed by zeros, at least `least`.
fn pleasant(least: f64) -> u64 {
    let mut unit = 1;
    loop {
        for step in [1, 2, 5].map(|digit| unit * digit) {
            if step as f64 >= least || unit > u64::MAX / 100 {
                return step;
            }
        }
        unit *= 10;
    }
}

/// Returns a line along these points, vertical where the size changed without a message.
fn path(points: &[Point], x: &impl Fn(usize) -> f64, y: &impl Fn(u64) -> f64) -> String {
    let mut path = String::new();
    for (at, point) in points.iter().enumerate() {
        let command = if at == 0 { 'M' } else { 'L' };
        let _ = write!(path, "{command}{:.1} {:.1}", x(point.said), y(point.tokens));
    }
    path
}

/// Returns the points, or the smallest and the largest of each run of neighbours, in order.
fn thinned(points: &[Point]) -> Vec<Point> {
    if points.len() <= MAX_POINTS {
        return points.to_vec();
    }
    let run = points.len().div_ceil(MAX_POINTS / 2);
    let ends = points.chunks(run).flat_map(|run| {
        let indexed = || run.iter().enumerate();
        let low = indexed().min_by_key(|(_, point)| point.tokens);
        let high = indexed().max_by_key(|(_, point)| point.tokens);
        let mut ends: Vec<_> = low.into_iter().chain(high).collect();
        ends.sort_by_key(|(at, _)| *at);
        ends.dedup_by_key(|(at, _)| *at);
        ends.into_iter().map(|(_, point)| *point)
    });
    ends.collect()
}

/// Draws the mark of a compaction: filled if it was not undone, open if it was undone, a cross if
/// it failed.
fn mark(svg: &mut String, compaction: &Compaction<'_>, x: f64, y: f64, named: bool) {
    let id = compaction.id;
    let (class, word) = match &compaction.outcome {
        Outcome::Done(done) if done.undone.is_none() => ("mark", "compacted"),
        Outcome::Done(_) => ("mark undone", "compacted and taken back"),
        Outcome::Failed { .. } => ("mark failed", "came to nothing"),
        Outcome::LeftOut => ("mark failed", "left out"),
    };
    let _ = write!(
        svg,
        "<a href=\"#c{id}\" aria-label=\"Compaction {id}: {word}\"><title>Compaction {id}: {word}</title>"
    );
    let stands = class == "mark";
    // Marks of other compactions have a lane of their own, because the next attempt is at the same
    // position.
    let (up, down) = if stands { (y, y) } else { (LANE, y) };
    if !stands {
        let _ = write!(
            svg,
            "<line class=\"drop\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{down:.1}\"/>",
            LANE + 7.0
        );
    }
    let _ = match class {
        "mark failed" => write!(
            svg,
            "<path class=\"{class}\" d=\"M{0:.1} {2:.1}L{1:.1} {3:.1}M{0:.1} {3:.1}L{1:.1} {2:.1}\"/>",
            x - 4.0,
            x + 4.0,
            up - 4.0,
            up + 4.0
        ),
        _ => write!(svg, "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{up:.1}\" r=\"4\"/>"),
    };
    if named {
        let (x, y) = if stands { (x, y - 8.0) } else { (x + 13.0, LANE + 4.0) };
        let _ = write!(
            svg,
            "<text class=\"name\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{id}</text>"
        );
    }
    svg.push_str("</a>");
}

/// A small figure: one value for each compaction, as bars or as a line of percentages.
pub(crate) struct Small<'a> {
    pub(crate) title: &'a str,
    pub(crate) total: String,
    /// The number of each compaction and its value, if it has one.
    pub(crate) values: Vec<(u64, Option<u64>)>,
    pub(crate) percent: bool,
}

const SMALL_WIDTH: f64 = 220.0;
const SMALL_TOP: f64 = 8.0;
const SMALL_BOTTOM: f64 = 76.0;
const SMALL_LEFT: f64 = 36.0;
const SMALL_RIGHT: f64 = 214.0;

impl Small<'_> {
    /// Whether a value is there that is not zero, so that the figure would not be empty.
    pub(crate) fn says_something(&self) -> bool {
        self.values.iter().any(|(_, value)| value.is_some_and(|value| value > 0 || self.percent))
    }

    pub(crate) fn figure(&self) -> String {
        let most = self.values.iter().filter_map(|(_, value)| *value).max().unwrap_or(0).max(1);
        let top = if self.percent { 100 } else { most };
        let y = |value: u64| {
            SMALL_BOTTOM - (SMALL_BOTTOM - SMALL_TOP) * (value as f64 / top as f64).min(1.0)
        };
        let slot = (SMALL_RIGHT - SMALL_LEFT) / self.values.len().max(1) as f64;
        let x = |at: usize| SMALL_LEFT + slot * (at as f64 + 0.5);
        let mut svg = format!(
            "<svg viewBox=\"0 0 {SMALL_WIDTH} 94\" role=\"img\" aria-label=\"{} for each compaction\">",
            self.title
        );
        for (value, name) in self.ticks(top) {
            let at = y(value);
            let _ = write!(
                svg,
                "<line class=\"grid\" x1=\"{SMALL_LEFT}\" x2=\"{SMALL_RIGHT}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
                 <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>",
                SMALL_LEFT - 5.0,
                at + 3.5
            );
        }
        if self.percent {
            self.line(&mut svg, &x, &y)
        } else {
            self.bars(&mut svg, slot, &x, &y)
        }
        for (at, (id, _)) in self.ends() {
            let _ = write!(
                svg,
                "<text class=\"tick\" x=\"{:.1}\" y=\"90\" text-anchor=\"middle\">{id}</text>",
                x(at)
            );
        }
        svg.push_str("</svg>");
        format!(
            "<figure class=\"small\"><figcaption>{}<b>{}</b></figcaption>{svg}</figure>",
            self.title, self.total
        )
    }

    fn ticks(&self, top: u64) -> Vec<(u64, String)> {
        let name = |value| if self.percent { format!("{value}\u{a0}%") } else { short(value) };
        [0, top / 2, top].into_iter().map(|value| (value, name(value))).collect()
    }

    /// Returns the first and the last value, with their indices.
    fn ends(&self) -> impl Iterator<Item = (usize, &(u64, Option<u64>))> {
        let last = self.values.len().saturating_sub(1);
        self.values.iter().enumerate().filter(move |(at, _)| *at == 0 || *at == last)
    }

    fn bars(
        &self,
        svg: &mut String,
        slot: f64,
        x: &impl Fn(usize) -> f64,
        y: &impl Fn(u64) -> f64,
    ) {
        let width = (slot * 0.7).clamp(0.5, 18.0);
        for (at, (id, value)) in self.values.iter().enumerate() {
            let Some(value) = value else { continue };
            let (left, up) = (x(at) - width / 2.0, y(*value));
            let _ = write!(
                svg,
                "<rect class=\"bar\" x=\"{left:.1}\" y=\"{up:.1}\" width=\"{width:.1}\" height=\"{:.1}\"><title>compaction {id}: {}</title></rect>",
                (SMALL_BOTTOM - up).max(0.0),
                thousands(*value)
            );
        }
    }

    fn line(&self, svg: &mut String, x: &impl Fn(usize) -> f64, y: &impl Fn(u64) -> f64) {
        let stated =
            || self.values.iter().enumerate().filter_map(|(at, (_, value))| Some((at, (*value)?)));
        let points: Vec<String> =
            stated().map(|(at, value)| format!("{:.1},{:.1}", x(at), y(value))).collect();
        let _ = write!(svg, "<polyline class=\"line\" points=\"{}\"/>", points.join(" "));
        if let Some((at, value)) = stated().next_back() {
            let _ = write!(
                svg,
                "<circle class=\"mark\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"/>",
                x(at),
                y(value)
            );
        }
    }
}
