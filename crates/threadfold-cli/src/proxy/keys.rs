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
const FORMS: [(&str, Vendor); 5] = [
    ("sk-ant-", Vendor::Anthropic),
    ("sk-proj-", Vendor::OpenAi),
    ("sk-svcacct-", Vendor::OpenAi),
    ("sk-admin-", Vendor::OpenAi),
    ("AIza", Vendor::Google),
];

/// Short forms, which count only where a key is expected.
const SHORT_FORMS: [(&str, Vendor); 2] = [("AQ.", Vendor::Google), ("ya29.", Vendor::Google)];

/// Headers that carry a key, beside `authorization`.
const PLACES: [&str; 3] = ["x-api-key", "x-goog-api-key", "api-key"];

/// Parameters of an address that carry a key.
const PARAMETERS: [&str; 3] = ["key", "api_key", "access_token"];

impl Form {
    /// The form of the key in a value, wherever in it the key stands: after `Bearer`, or in quotes.
    fn within(value: &str, is_place: bool) -> Self {
        let is_part = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.');
        let words = value.split(|char| !is_part(char)).filter(|word| !word.is_empty());
        let forms = words.map(|word| Self::of(word, is_place));
        forms
            .max_by_key(|form| match form {
                Self::Of(..) => 2,
                Self::Common => 1,
                Self::Unknown => 0,
            })
            .unwrap_or(Self::Unknown)
    }

    fn of(key: &str, is_place: bool) -> Self {
        let short = if is_place { SHORT_FORMS.as_slice() } else { &[] };
        let known = FORMS.iter().chain(short).find(|(form, _)| key.starts_with(form));
        if let Some((form, vendor)) = known {
            return Self::Of(*vendor, form);
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

/// The vendor that a key names by its form; `None` if the form is that of several.
pub(crate) fn vendor_of(key: &str) -> Option<Vendor> {
    match Form::within(key, true) {
        Form::Of(vendor, _) => Some(vendor),
        Form::Common | Form::Unknown => None,
    }
}

/// Why the request must not go there: it carries a key of another vendor. The message names both,
/// and never the key.
pub(super) fn foreign(to: Destination, headers: &HeaderMap, query: Option<&str>) -> Option<String> {
    keys(headers, query).into_iter().find_map(|key| {
        let of = match key.form {
            Form::Of(vendor, _) => Some(vendor),
            Form::Common if to.is_own_host => Some(Vendor::OpenAi),
            // Azure's header. Some gateways take it in any dialect.
            Form::Unknown if to.is_own_host && key.place == "header api-key" => {
                Some(Vendor::OpenAi)
            }
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
        let is_place = name == AUTHORIZATION || PLACES.contains(&name.as_str());
        let form = Form::within(&String::from_utf8_lossy(value.as_bytes()), is_place);
        // Any other header carries a key only if it has the form of one.
        if !is_place && !matches!(form, Form::Of(..)) {
            return None;
        }
        let place_of = match name.as_str() {
            "x-api-key" => Some(Vendor::Anthropic),
            "x-goog-api-key" => Some(Vendor::Google),
            "authorization" if form == Form::Common && speaks_anthropic => Some(Vendor::Anthropic),
            "authorization" if form == Form::Common => Some(Vendor::OpenAi),
            _ => None,
        };
        Some(Key { place: format!("header {name}"), form, place_of })
    });
    let in_query = query.into_iter().flat_map(|query| query.split('&')).filter_map(|pair| {
        let (name, key) = pair.split_once('=')?;
        let is_place = PARAMETERS.contains(&name);
        let form = Form::within(key, is_place);
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
        // The place and the key, the vendor of the path, and whether it is sent: to the vendor's own
        // host, and to another.
        type Row = (&'static [(&'static str, &'static str)], Vendor, bool, bool);
        let rows: &[Row] = &[
            (&[("x-api-key", "sk-ant-api03-x")], Anthropic, true, true),
            (&[("x-api-key", "sk-ant-api03-x")], OpenAi, false, false),
            (&[("x-api-key", "sk-ant-api03-x")], Google, false, false),
            (&[("authorization", "Bearer sk-ant-oat01-x")], Anthropic, true, true),
            (&[("authorization", "Bearer sk-ant-oat01-x")], OpenAi, false, false),
            (&[("authorization", "bearer  sk-proj-x")], OpenAi, true, true),
            (&[("authorization", "Bearer sk-proj-x")], Anthropic, false, false),
            (&[("authorization", "Bearer sk-xT3BlbkFJy")], Anthropic, false, false),
            (&[("x-api-key", "sk-proj-x")], Anthropic, false, false),
            (&[("authorization", "Bearer sk-1234")], OpenAi, true, true),
            (&[("authorization", "Bearer sk-1234")], Anthropic, false, false),
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
            (&[("authorization", "Bearer AIzaX")], OpenAi, false, false),
            (&[("authorization", "Bearer ya29.x")], Google, true, true),
            (&[("authorization", "Bearer eyJhbGciOi")], OpenAi, true, true),
            (&[("authorization", "Bearer eyJhbGciOi")], Anthropic, true, true),
            (&[("x-other", "sk-ant-x")], OpenAi, false, false),
            (&[("api-key", "0123abcd")], Anthropic, false, true),
            (&[("api-key", "0123abcd")], OpenAi, true, true),
            (&[("authorization", "Bearer sk-1"), ("x-api-key", "sk-ant-x")], OpenAi, false, false),
            (&[("authorization", "Bearer\tsk-ant-x")], OpenAi, false, false),
            (&[("authorization", "Bearer \"sk-ant-x\"")], OpenAi, false, false),
            (&[("authorization", "Basic sk-ant-x, other")], OpenAi, false, false),
            (&[("user-agent", "sk-tool/1.0 AQ.x")], Anthropic, true, true),
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
