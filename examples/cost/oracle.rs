//! The lowest bill that any choice of moments and targets could have.

use threadfold::compact::Prices;

use super::{course::Course, provider::KEEP_ALIVE_OUTPUT};

/// The number of sizes that are tried, from the smallest to the window.
const TARGETS: u64 = 8;

/// The numbers of a course that the oracle needs.
struct Known<'a> {
    prices: &'a Prices,
    window: u64,
    overhead: u64,
    /// The tokens of a summary, or zero if no model writes one.
    summary: u64,
    /// For each request: all tokens that arrived before it, the tokens of its answer, and how many
    /// keep-alives the previous prompt needs to be in the cache still.
    arrived: Vec<u64>,
    output: Vec<u64>,
    keep_alives: Vec<i64>,
}

/// The lowest bill of all requests from one on, if the thread is compacted before it.
#[derive(Clone, Copy, Debug, Default)]
struct Later {
    /// If the unchanged part of the prompt is still in the cache.
    warm: i64,
    cold: i64,
}

/// Returns the lowest bill of the requests of a course, if a compaction may precede any of them.
/// `sizes` has the smallest size, in tokens, that a compaction can leave of the thread before each
/// request, and `kept` the maximum that one left unchanged at the start of the thread.
///
/// The oracle knows the future: it is dynamic programming from the last request to the first, over
/// the moments of compactions and the sizes that they leave. Its compactions cost only the
/// rewritten prompt and a summary of so many tokens that reads the last prompt from the cache, may
/// come as often as they pay, and reach sizes above the smallest exactly. While the user is away, it
/// keeps the cache alive exactly as long as that is cheaper. So no policy that compacts with this
/// strategy is cheaper.
pub(crate) fn least_bill(
    course: &Course,
    prices: &Prices,
    sizes: &[u64],
    kept: u64,
    summary: u64,
) -> i64 {
    let known = Known::of(course, prices, summary);
    let most = course.window.saturating_sub(course.overhead());
    let mut from: Vec<Later> = vec![Later::default(); sizes.len() + 1];
    for (request, least) in sizes.iter().enumerate().rev() {
        let room = most.saturating_sub(*least);
        let best = |kept| {
            let targets = (0..TARGETS).map(|target| *least + room * target / TARGETS);
            let costs = targets.map(|target| known.cost(request, target, Some(kept), &from));
            costs.min().unwrap_or(i64::MAX)
        };
        let later = Later { warm: best(course.overhead().saturating_add(kept)), cold: best(0) };
        if let Some(from) = from.get_mut(request) {
            *from = later;
        }
    }
    let first = known.arrived.first().copied().unwrap_or_default();
    known.cost(0, first, None, &from)
}

impl<'a> Known<'a> {
    fn of(course: &Course, prices: &'a Prices, summary: u64) -> Self {
        let (window, overhead) = (course.window, course.overhead());
        let (arrived, output, keep_alives) = (Vec::new(), Vec::new(), Vec::new());
        let mut known = Self { prices, window, overhead, summary, arrived, output, keep_alives };
        let (mut all, mut used) = (0, 0);
        for step in &course.steps {
            all += step.incoming_tokens();
            known.arrived.push(all);
            known.output.push(step.output());
            let lives = (step.at.0 - used) / prices.cache_life_ms.max(1);
            known.keep_alives.push(i64::try_from(lives).unwrap_or(i64::MAX));
            all += step.output();
            used = step.at.0;
        }
        known
    }

    /// The bill of a request that reads a prompt of this many tokens from the cache.
    fn read(&self, prompt: u64, output: u64) -> i64 {
        self.prices.bill(&self.prices.usage(prompt, prompt, output))
    }

    /// The lowest bill from a compaction on: it comes at once, or after keep-alives, with a cache
    /// that is warm afterwards.
    fn compacted(&self, prompt: u64, keep_alives: i64, later: Later) -> i64 {
        let summary = match self.summary {
            0 => 0,
            tokens => self.read(prompt, tokens),
        };
        let kept = keep_alives.saturating_mul(self.read(prompt, KEEP_ALIVE_OUTPUT));
        let warm = kept.saturating_add(later.warm);
        let best = if keep_alives == 0 { warm } else { warm.min(later.cold) };
        summary.saturating_add(best)
    }

    /// Returns the lowest bill from a request on whose thread has `size` tokens, for the best
    /// moment of the next compaction, if any. `shared` tokens of its prompt are in the cache if a
    /// compaction came directly before. `from` has the bills after a compaction.
    fn cost(&self, first: usize, size: u64, shared: Option<u64>, from: &[Later]) -> i64 {
        let base = self.arrived.get(first).copied().unwrap_or_default();
        let next = self.keep_alives.iter().skip(1).chain([&0]);
        let requests = { self.arrived.iter().zip(&self.output).zip(&self.keep_alives) }
            .zip(next.zip(from.iter().skip(1)));
        let (mut sum, mut best, mut last): (i64, _, _) = (0, i64::MAX, 0);
        for (index, (((arrived, output), lives), (next, later))) in requests.enumerate().skip(first)
        {
            let prompt = self.overhead.saturating_add(size).saturating_add(arrived - base);
            // A request that no compaction makes fit is sent as it is.
            if prompt > self.window && index > first {
                return best;
            }
            let bill = |shared| self.prices.bill(&self.prices.usage(prompt, shared, *output));
            sum += match shared.filter(|_| index == first) {
                Some(shared) => bill(shared),
                None if *lives == 0 => bill(last),
                None => {
                    let kept = lives.saturating_mul(self.read(last, KEEP_ALIVE_OUTPUT));
                    bill(0).min(kept.saturating_add(bill(last)))
                }
            };
            best = best.min(sum.saturating_add(self.compacted(prompt, *next, *later)));
            last = prompt;
        }
        // The bill without another compaction.
        best.min(sum)
    }
}
