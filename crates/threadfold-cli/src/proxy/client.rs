//! The client that sent a request, by the name that it gives itself.

use hyper::{HeaderMap, header::USER_AGENT};

/// The maximum length of a name, in bytes.
const MAX: usize = 40;

/// Returns the first product of `User-Agent`, with its version: `claude-cli 2.1.0` of
/// `claude-cli/2.1.0 (external, cli)`. Empty if there is none that can be printed.
pub(super) fn name(headers: &HeaderMap) -> String {
    let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    let product = agent.split_whitespace().next().unwrap_or_default();
    product.chars().take(MAX).map(|c| if c == '/' { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_named_by_its_first_product() {
        let named = |agent: &str| {
            name(&[(USER_AGENT, agent.parse().unwrap())].into_iter().collect::<HeaderMap>())
        };
        assert_eq!(named("claude-cli/2.1.0 (external, cli)"), "claude-cli 2.1.0");
        assert_eq!(named("Anthropic/Python 0.79"), "Anthropic Python");
        assert_eq!(named(""), "");
        assert_eq!(named(&"x".repeat(99)).len(), MAX);
        assert_eq!(name(&HeaderMap::new()), "");
    }
}
