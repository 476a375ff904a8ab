//! The paths to values in the arguments of a call: the singular queries of RFC 9535, such as
//! `$.edits[0]['old text']`.

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Into the field of an object.
    Key(String),
    /// To an item of an array.
    Index(usize),
}

/// JSON of more levels cannot be read back.
const MAX_STEPS: usize = 100;

impl Step {
    /// Reads a path.
    pub(super) fn path(text: &str) -> Result<Vec<Self>, &'static str> {
        let mut rest = text.strip_prefix('$').ok_or("a path does not begin with $")?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if steps.len() == MAX_STEPS {
                return Err("a path is too deep");
            }
            let (step, behind) = Self::first(rest).ok_or("a path cannot be read")?;
            steps.push(step);
            rest = behind;
        }
        Ok(steps)
    }

    /// The first step, and what stands after it.
    fn first(path: &str) -> Option<(Self, &str)> {
        if let Some(name) = path.strip_prefix('.') {
            let (name, behind) = name.split_at(name.find(['.', '[']).unwrap_or(name.len()));
            return (!name.is_empty()).then(|| (Self::Key(name.to_owned()), behind));
        }
        let inner = path.strip_prefix('[')?;
        if let Some(quote) = inner.chars().next().filter(|first| "'\"".contains(*first)) {
            let quoted = inner.get(1..)?;
            let end = closing(quoted, quote)?;
            let name = unquoted(quoted.get(..end)?, quote)?;
            return Some((Self::Key(name), quoted.get(end + 1..)?.strip_prefix(']')?));
        }
        let (index, behind) = inner.split_once(']')?;
        Some((Self::Index(index.parse().ok()?), behind))
    }
}

/// Where the quoted name ends.
fn closing(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    let closes = |(_, char): &(usize, char)| {
        let closes = *char == quote && !escaped;
        escaped = *char == '\\' && !escaped;
        closes
    };
    text.char_indices().find(closes).map(|(at, _)| at)
}

/// The name between the quotes. Its escapes are those of JSON, and that of the single quote.
fn unquoted(text: &str, quote: char) -> Option<String> {
    if quote == '"' {
        return serde_json::from_str(&format!("\"{text}\"")).ok();
    }
    let mut json = String::from('"');
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            '"' => json.push_str("\\\""),
            '\\' => match chars.next()? {
                '\'' => json.push('\''),
                other => json.extend(['\\', other]),
            },
            other => json.push(other),
        }
    }
    json.push('"');
    serde_json::from_str(&json).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_names_and_indices() {
        let key = |key: &str| Step::Key(key.to_owned());
        for (path, expected) in [
            ("$", vec![]),
            ("$.a.bé[0].c", vec![key("a"), key("bé"), Step::Index(0), key("c")]),
            ("$['a.b'][\"c]\"]", vec![key("a.b"), key("c]")]),
            (r#"$['it\'s "x"'][12]"#, vec![key("it's \"x\""), Step::Index(12)]),
            (r#"$["\u00e9\\"]"#, vec![key("é\\")]),
        ] {
            assert_eq!(Step::path(path), Ok(expected), "{path}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for path in
            ["", "a", "$a", "$.", "$..a", "$[", "$[-1]", "$[*]", "$['a", "$['a'", "$[\"\\\"]"]
        {
            assert!(Step::path(path).is_err(), "{path}");
        }
        assert!(Step::path(&format!("${}", "[0]".repeat(100_000))).is_err());
    }
}
