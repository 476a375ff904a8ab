//! Rules as data, and what breaks them.

use std::fmt;

/// A rule of a vendor's API, and where it is stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// A short name, unique within its API.
    pub name: &'static str,
    /// The rule in one sentence.
    pub says: &'static str,
    /// Where it was read.
    pub source: Source,
}

/// Declares the rules of an API, each with its name, its sentence and its source, and their list.
macro_rules! rules {
    ($($rule:ident $name:literal: $says:literal, $source:ident $(($place:literal))?;)+) => {
        pub(super) static RULES: &[&$crate::rulebook::rule::Rule] = &[$(&$rule),+];
        $(pub(super) static $rule: $crate::rulebook::rule::Rule = $crate::rulebook::rule::Rule {
            name: $name,
            says: $says,
            source: $crate::rulebook::rule::Source::$source $(($place))?,
        };)+
    };
}

pub(super) use rules;

/// Where a rule was read. All sources were read in November 2026.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// The vendor's documentation.
    Documentation(&'static str),
    /// The types or comments of a published SDK, with its version.
    Sdk(&'static str),
    /// A public report that quotes the API's error: a thread, or an article with its requests.
    Report(&'static str),
    /// Common knowledge, for which no source was found in writing. The real API may differ.
    Common,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Documentation(page) => write!(f, "documentation: {page}"),
            Self::Sdk(sdk) => write!(f, "SDK: {sdk}"),
            Self::Report(report) => write!(f, "report: {report}"),
            Self::Common => f.write_str("common knowledge"),
        }
    }
}

/// What breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: &'static Rule,
    /// The status of the answer.
    pub status: u16,
    /// The vendor's error message, as far as it is known.
    pub message: String,
    /// The vendor's code for the error, where it has one.
    pub code: Option<&'static str>,
    /// The parameter that the vendor names, where it names one.
    pub param: Option<String>,
}

/// The violation that a check found.
pub(super) type Found = Option<Violation>;

/// Reports a violation that is answered with status 400.
pub(super) fn wrong(rule: &'static Rule, message: impl Into<String>) -> Found {
    Some(Violation::new(rule, message))
}

impl Violation {
    /// A violation that is answered with status 400.
    pub(super) fn new(rule: &'static Rule, message: impl Into<String>) -> Self {
        Self { rule, status: 400, message: message.into(), code: None, param: None }
    }

    pub(super) fn coded(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    pub(super) fn at(self, param: impl Into<String>) -> Self {
        Self { param: Some(param.into()), ..self }
    }

    pub(super) fn status(self, status: u16) -> Self {
        Self { status, ..self }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {})", self.message, self.rule.name, self.rule.source)
    }
}
