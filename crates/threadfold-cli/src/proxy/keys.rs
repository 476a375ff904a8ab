//! Whose key a request carries. A key of one vendor is never sent to another.
//!
//! A key names its vendor by its form (`sk-ant-`, `sk-proj-`, `AIza`), or else by the header that
//! carries it. `sk-` alone is the form of OpenAI and of many gateways, so at a host that belongs to
//! no vendor the header decides.

use hyper::{HeaderMap, header::AUTHORIZATION};

use super::endpoint::Vendor;

/// Where a request goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Destination {
    /// The vendor of the path, or of the upstream's host if it belongs to one.
    pub(super) vendor: Vendor,
    /// Whether the host belongs to this vendor. Gateways and local servers have keys of their own.
    pub(super) is_own_host: bool,
}

/// A key of a request, without the key.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    /// The header or the parameter.
    place: String,
    form: Form,
    /// The vendor whose clients use this place.
    place_of: Option<Vendor>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The form of one vendor, with its first characters.
    Of(Vendor, &'static str),
    /// `sk-`, which OpenAI and many others use.
    Common,
    Unknown,
}

/// Forms that only one vendor uses.
const FORMS: [(&str, Vendor); 9] = [
    ("sk-ant-", Vendor::Anthropic),
    ("sk-proj-", Vendor::OpenAi),
    ("sk-svcacct-", Vendor::OpenAi),
    ("sk-admin-", Vendor::OpenAi),
    ("sk-None-", Vendor::OpenAi),
    ("sess-", Vendor::OpenAi),
    ("AIza", Vendor::Google),
    ("AQ.", Vendor::Google),
    ("ya29.", Vendor::Google),
];

/// Parameters of an address that carry a key.
const PARAMETERS: [&str; 3] = ["key", "api_key", "access_token"];

impl Form {
    fn of(key: &str) -> Self {
        if let Some((form, vendor)) = FORMS.into_iter().find(|(form, _)| key.starts_with(form)) {
            return Self::Of(vendor, form);
        }
        match key.starts_with("sk-") {
            // `OpenAI` in Base64 is within each of its keys.
            true if key.contains("T3BlbkFJ") => Self::Of(Vendor::OpenAi, "sk-"),
            true => Self::Common,
            false => Self::Unknown,
        }
    }
}

/// The vendor that the keys of a request belong to, for a path that names none. `None` if nothing
/// in the request names one.
pub(super) fn vendor(headers: &HeaderMap, query: Option<&str>) -> Option<Vendor> {
    let keys = keys(headers, query);
    let by_form = keys.iter().find_map(|key| match key.form {
        Form::Of(vendor, _) => Some(vendor),
        Form::Common | Form::Unknown => None,
    });
    let speaks = headers.contains_key("anthropic-version").then_some(Vendor::Anthropic);
    by_form.or(speaks).or_else(|| keys.iter().find_map(|key| key.place_of))
}

/// Why the request must not go there: it carries a key of another vendor. The message names both,
/// and never the key.
pub(super) fn foreign(to: Destination, headers: &HeaderMap, query: Option<&str>) -> Option<String> {
    keys(headers, query).into_iter().find_map(|key| {
        let of = match key.form {
            Form::Of(vendor, _) => Some(vendor),
            Form::Common if to.is_own_host => Some(Vendor::OpenAi),
            Form::Common | Form::Unknown => key.place_of,
        };
        let of = of.filter(|vendor| *vendor != to.vendor)?;
        let form = match key.form {
            Form::Of(_, form) => format!(" that begins with {form}"),
            Form::Common => " that begins with sk-".to_owned(),
            Form::Unknown => String::new(),
        };
        Some(format!(
            "the request carries a key of {} ({}{form}), but its path belongs to {} ({}); it was \
             not sent",
            of.name(),
            key.place,
            to.vendor.name(),
            to.vendor.option(),
        ))
    })
}

fn keys(headers: &HeaderMap, query: Option<&str>) -> Vec<Key> {
    let speaks_anthropic = headers.contains_key("anthropic-version");
    let in_headers = headers.iter().filter_map(|(name, value)| {
        // Bytes that are no text carry no key of a known form.
        let value = value.to_str().unwrap_or_default().trim();
        let key = value.rsplit_once(' ').map_or(value, |(_, key)| key);
        let form = Form::of(key);
        let place_of = match name.as_str() {
            "x-api-key" => Some(Vendor::Anthropic),
            "x-goog-api-key" => Some(Vendor::Google),
            "api-key" => None,
            _ if name == AUTHORIZATION => match form {
                Form::Common if speaks_anthropic => Some(Vendor::Anthropic),
                Form::Common => Some(Vendor::OpenAi),
                Form::Of(..) | Form::Unknown => None,
            },
            // Any other header carries a key only if it has the form of one.
            _ if !matches!(form, Form::Of(..)) => return None,
            _ => None,
        };
        Some(Key { place: format!("header {name}"), form, place_of })
    });
    let in_query = query.into_iter().flat_map(|query| query.split('&')).filter_map(|pair| {
        let (name, key) = pair.split_once('=')?;
        let form = Form::of(key);
        let is_place = PARAMETERS.contains(&name);
        if !is_place && !matches!(form, Form::Of(..)) {
            return None;
        }
        let place = if is_place { format!("parameter {name}") } else { "a parameter".to_owned() };
        Some(Key { place, form, place_of: None })
    });
    in_headers.chain(in_query).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_key_goes_only_to_its_vendor() {
        use Vendor::{Anthropic, Google, OpenAi};
        let bearer = |key| [("authorization", key)];
        // The place and the key, the vendor of the path, and whether it is sent: to the vendor's own
        // host, and to another.
        let rows: &[(&[(&str, &str)], Vendor, bool, bool)] = &[
            (&[("x-api-key", "sk-ant-api03-x")], Anthropic, true, true),
            (&[("x-api-key", "sk-ant-api03-x")], OpenAi, false, false),
            (&[("x-api-key", "sk-ant-api03-x")], Google, false, false),
            (&bearer("Bearer sk-ant-oat01-x"), Anthropic, true, true),
            (&bearer("Bearer sk-ant-oat01-x"), OpenAi, false, false),
            (&bearer("bearer  sk-proj-x"), OpenAi, true, true),
            (&bearer("Bearer sk-proj-x"), Anthropic, false, false),
            (&bearer("Bearer sk-xT3BlbkFJy"), Anthropic, false, false),
            (&[("x-api-key", "sk-proj-x")], Anthropic, false, false),
            (&bearer("Bearer sk-1234"), OpenAi, true, true),
            (&bearer("Bearer sk-1234"), Anthropic, false, false),
            (&[("x-api-key", "sk-1234")], Anthropic, false, true),
            (
                &[("authorization", "Bearer sk-1234"), ("anthropic-version", "2023-06-01")],
                Anthropic,
                false,
                true,
            ),
            (&[("x-api-key", "secret")], OpenAi, false, false),
            (&[("x-api-key", "secret")], Anthropic, true, true),
            (&[("x-goog-api-key", "AIzaX")], Google, true, true),
            (&[("x-goog-api-key", "AIzaX")], OpenAi, false, false),
            (&[("x-goog-api-key", "other")], Anthropic, false, false),
            (&bearer("Bearer AIzaX"), OpenAi, false, false),
            (&bearer("Bearer ya29.x"), Google, true, true),
            (&bearer("Bearer eyJhbGciOi"), OpenAi, true, true),
            (&bearer("Bearer eyJhbGciOi"), Anthropic, true, true),
            (&[("x-other", "sk-ant-x")], OpenAi, false, false),
            (&[("authorization", "Bearer sk-1"), ("x-api-key", "sk-ant-x")], OpenAi, false, false),
            (&[("user-agent", "sk-tool")], Anthropic, true, true),
        ];
        for (pairs, vendor, own, other) in rows {
            let sent = |is_own_host| {
                let to = Destination { vendor: *vendor, is_own_host };
                foreign(to, &headers(pairs), None).is_none()
            };
            assert_eq!((sent(true), sent(false)), (*own, *other), "{pairs:?} to {vendor:?}");
        }
        let to = Destination { vendor: OpenAi, is_own_host: true };
        let none = HeaderMap::new();
        assert!(foreign(to, &none, Some("alt=sse&key=AIzaX")).is_some());
        assert!(foreign(to, &none, Some("key=7")).is_none());
        let words = foreign(to, &headers(&[("x-api-key", "sk-ant-secret")]), None).unwrap();
        assert!(words.contains("Anthropic") && words.contains("OpenAI"), "{words}");
        assert!(!words.contains("secret"), "{words}");
    }

    #[test]
    fn a_path_that_names_no_vendor_goes_to_that_of_the_key() {
        let of = |pairs: &[(&'static str, &'static str)]| vendor(&headers(pairs), None);
        assert_eq!(of(&[("x-api-key", "secret")]), Some(Vendor::Anthropic));
        assert_eq!(of(&[("anthropic-version", "1")]), Some(Vendor::Anthropic));
        assert_eq!(of(&[("authorization", "Bearer sk-1")]), Some(Vendor::OpenAi));
        assert_eq!(of(&[("authorization", "Bearer AIzaX")]), Some(Vendor::Google));
        assert_eq!(of(&[("authorization", "Bearer other")]), None);
        assert_eq!(vendor(&HeaderMap::new(), Some("key=AIzaX")), Some(Vendor::Google));
    }
}
