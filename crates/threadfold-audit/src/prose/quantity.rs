//! Numbers, dates and times of day as values, which can be compared: `3,000` is `3000`, `5 pm` is
//! `17:00`.
//!
//! The same digits may have several readings: `1.500` is 1500 or one and a half, `3/4` a day in
//! March or in April. Two spellings state the same quantity if they have a reading in common.

/// A spelling of a quantity in a text.
#[derive(Debug)]
pub(crate) struct Spelled<'a> {
    pub(crate) text: &'a str,
    pub(crate) readings: Vec<Quantity>,
    /// Whether the quantity is a word of its own, not part of a path, a name or a version.
    pub(crate) is_whole: bool,
}

/// A reading of a number, a date or a time of day.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Quantity {
    Number(Number),
    Time(Time),
    Day(Day),
    /// The number of a month in the year.
    Month(u32),
    /// The number of a day in the week, from Monday on.
    Weekday(u32),
}

impl Quantity {
    /// Returns the two readings of a number, with its unit and with the unit ignored.
    pub(super) fn of_number(value: &str, unit: Option<u32>) -> [Self; 2] {
        let unit = unit.map_or(Unit::Missing, Unit::Known);
        [unit, Unit::Ignored].map(|unit| Self::Number(Number { value: value.to_owned(), unit }))
    }

    pub(crate) fn number(&self) -> Option<&Number> {
        if let Self::Number(number) = self { Some(number) } else { None }
    }

    pub(crate) fn has_unit(&self) -> bool {
        self.number().is_some_and(|number| matches!(number.unit, Unit::Known(_)))
    }
}

/// A number with what is known of its unit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Number {
    /// The value in decimal digits, with a point before decimals.
    pub(crate) value: String,
    pub(crate) unit: Unit,
}

/// The unit in a reading of a number.
///
/// `12 ms` is read as 12 of a known unit and as 12 with the unit ignored, a bare `12` as 12 without
/// a unit and as 12 with the unit ignored. So a search for a bare `12` finds every `12`. A search
/// for `12 ms` replaces the second reading by 12 without a unit, and so finds `12 ms` and a bare
/// `12`, but not `12 s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Unit {
    /// The number of the unit in the list of measures.
    Known(u32),
    /// The text gives no unit.
    Missing,
    /// The text may give any unit or none.
    Ignored,
}

/// A time of day on a clock with twelve hours, because `5:30` may be in the afternoon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Time {
    /// The minutes after midnight or noon.
    minutes: u32,
}

impl Time {
    /// The minutes in twelve hours.
    pub(super) const HALF_DAY: u32 = 12 * 60;

    /// Returns the time so many hours and minutes after midnight.
    pub(super) fn new(hours: u32, minutes: u32) -> Self {
        Self { minutes: (hours * 60 + minutes) % Self::HALF_DAY }
    }

    /// Returns the hours with which a spelling of the time may begin: 5, 17 and 29 for `5:30`.
    pub(crate) fn hours(self) -> [u32; 3] {
        let hour = self.minutes / 60;
        [hour, hour + 12, hour + 24]
    }
}

/// A day in any year.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Day {
    pub(crate) month: u32,
    /// The day of the month.
    pub(crate) day: u32,
}

impl Day {
    /// Returns the day, if the month and the day are valid.
    pub(super) fn new(month: u32, day: u32) -> Option<Self> {
        let is_valid = (1..=12).contains(&month) && (1..=31).contains(&day);
        is_valid.then_some(Self { month, day })
    }
}
