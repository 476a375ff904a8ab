//! The cheapest bill that any choice of moments and targets could have had.

use threadfold::compact::Prices;

use super::{course::Course, provider::is_warm};

/// The number of sizes that are tried, from the least to the window.
const TARGETS: u64 = 8;

/// A course as the oracle sees it, in numbers.
struct Known<'a> {
    prices: &'a Prices,
    window: u64,
    overhead: u64,
    /// For each request: all tokens that arrived until it was sent, its answer, and whether it finds
    /// the prompt before in the cache.
    arrived: Vec<u64>,
    output: Vec<u64>,
    warm: Vec<bool>,
}

/// Returns the least that the requests of a course can cost, if a compaction may stand before any of
/// them. `sizes` has the least tokens that a compaction can leave of the thread before each request, and
/// `kept` the most that one left unchanged at the start of the thread.
///
/// The oracle knows all that is to come: dynamic programming from the last request to the first,
/// over the moments of compactions and the sizes that they leave. Its compactions cost only the
/// prompt that they rewrite, may come as often as they pay, and reach larger sizes than the least to
/// the token. So no policy is cheaper that compacts with this strategy.
pub(crate) fn least_bill(course: &Course, prices: &Prices, sizes: &[u64], kept: u64) -> i64 {
    let known = Known::of(course, prices);
    let most = course.window.saturating_sub(course.overhead());
    // The least cost of all requests from this one on if the thread is compacted before it.
    let mut from: Vec<i64> = vec![0; sizes.len() + 1];
    for (request, least) in sizes.iter().enumerate().rev() {
        let room = most.saturating_sub(*least);
        let targets = (0..TARGETS).map(|target| *least + room * target / TARGETS);
        let costs = targets.map(|target| known.cost(request, target, Some(kept), &from));
        let best = costs.min().unwrap_or(i64::MAX);
        if let Some(cost) = from.get_mut(request) {
            *cost = best;
        }
    }
    let first = known.arrived.first().copied().unwrap_or_default();
    known.cost(0, first, None, &from)
}

impl<'a> Known<'a> {
    fn of(course: &Course, prices: &'a Prices) -> Self {
        let (window, overhead) = (course.window, course.overhead());
        let (arrived, output, warm) = (Vec::new(), Vec::new(), Vec::new());
        let mut known = Self { prices, window, overhead, arrived, output, warm };
        let (mut all, mut used) = (0, None);
        for step in &course.steps {
            all += step.incoming_tokens();
            known.arrived.push(all);
            known.output.push(step.output());
            known.warm.push(is_warm(prices, used, step.at));
            all += step.output();
            used = Some(step.at);
        }
        known
    }

    /// The least cost from a request on whose thread has `size` tokens, of which a compaction right
    /// before it kept so many unchanged: the best moment of the next compaction, if any. `from` has
    /// the costs after one.
    fn cost(&self, first: usize, size: u64, kept: Option<u64>, from: &[i64]) -> i64 {
        let base = self.arrived.get(first).copied().unwrap_or_default();
        let requests =
            self.arrived.iter().zip(&self.output).zip(&self.warm).zip(from.iter().skip(1));
        let (mut sum, mut best, mut last): (i64, _, _) = (0, i64::MAX, 0);
        for (index, (((arrived, output), warm), later)) in requests.enumerate().skip(first) {
            let prompt = self.overhead.saturating_add(size).saturating_add(arrived - base);
            // A request that no compaction makes fit is sent as it is.
            if prompt > self.window && index > first {
                return best;
            }
            let shared = match kept {
                _ if !warm => 0,
                Some(kept) if index == first => self.overhead.saturating_add(kept),
                Some(_) | None => last,
            };
            sum += self.prices.bill(&self.prices.usage(prompt, shared, *output));
            best = best.min(sum.saturating_add(*later));
            last = prompt;
        }
        // Without another compaction.
        best.min(sum)
    }
}
