//! Durations as people write them: `2s`, `1m30s`, `250ms`. A bare number is refused: whether it was meant as seconds or
//! milliseconds would be a guess.

use std::{fmt, time::Duration};

use jiff::{
    SignedDuration,
    fmt::friendly::{Spacing, SpanParser, SpanPrinter},
};
use serde::{Deserializer, Serializer, de};

use super::origin::shorten;

/// The longest duration that is taken: 30 days. Longer than any pod's grace period, and far from where sums of clock
/// readings overflow.
pub const LONGEST: Duration = Duration::from_hours(30 * 24);

/// Why a text is no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// A bare number.
    #[error("a duration needs a unit: write {0}s or {0}ms instead of {0}")]
    Unit(String),
    /// Below zero.
    #[error("{0} is negative; a duration is zero or more")]
    Negative(String),
    /// More than [`LONGEST`].
    #[error("{0} is longer than the {days} days that are accepted", days = LONGEST.as_secs() / 86_400)]
    TooLong(String),
    /// Anything else.
    #[error("{0:?} is not a duration; write 2s, 1m30s or 250ms")]
    Unreadable(String),
}

/// Reads a duration.
///
/// # Errors
/// See [`DurationError`].
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let text = text.trim();
    let shown = shorten(text);
    if !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-' | '+')) {
        return Err(if text.starts_with('-') { DurationError::Negative(shown) } else { DurationError::Unit(shown) });
    }
    match SpanParser::new().parse_duration(text) {
        Ok(duration) if duration.is_negative() => Err(DurationError::Negative(shown)),
        Ok(duration) => match Duration::try_from(duration) {
            Ok(duration) if duration <= LONGEST => Ok(duration),
            _ => Err(DurationError::TooLong(shown)),
        },
        Err(_) => Err(DurationError::Unreadable(shown)),
    }
}

/// Writes a duration so that [`parse`] reads the same: `1m30s`.
pub fn format(duration: Duration) -> String {
    // Beyond `LONGEST` only by construction; the longest that can be printed is close enough there.
    let duration = SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
    SpanPrinter::new().spacing(Spacing::None).duration_to_string(&duration)
}

/// For `#[serde(with)]`.
///
/// # Errors
/// Those of the serializer.
pub(super) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format(*duration))
}

/// For `#[serde(with)]`.
///
/// # Errors
/// See [`DurationError`].
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    deserializer.deserialize_any(Visitor)
}

pub(super) struct Visitor;

impl de::Visitor<'_> for Visitor {
    type Value = Duration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration such as 2s, 1m30s or 250ms")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Duration, E> {
        parse(text).map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Duration, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Duration, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Duration, E> {
        self.visit_str(&number.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        for (text, millis) in
            [("2s", 2_000), ("1m30s", 90_000), ("250ms", 250), ("0s", 0), ("1.5s", 1_500), ("1h", 3_600_000)]
        {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn names_the_mistake() {
        assert_eq!(parse("25"), Err(DurationError::Unit("25".into())));
        assert_eq!(parse("2.5"), Err(DurationError::Unit("2.5".into())));
        assert_eq!(parse("-3"), Err(DurationError::Negative("-3".into())));
        assert_eq!(parse("-3s"), Err(DurationError::Negative("-3s".into())));
        assert_eq!(parse("3s ago"), Err(DurationError::Negative("3s ago".into())));
        assert_eq!(parse("721h"), Err(DurationError::TooLong("721h".into())));
        for text in ["", "soon", "2 fortnights", "s", "∞"] {
            assert_eq!(parse(text), Err(DurationError::Unreadable(text.into())));
        }
    }

    proptest::proptest! {
        #[test]
        fn writes_what_it_reads(millis in 0..=2_592_000_000_u64) {
            let duration = Duration::from_millis(millis);
            proptest::prop_assert_eq!(parse(&format(duration)), Ok(duration));
        }

        #[test]
        fn takes_any_text(text in ".*") {
            if let Ok(duration) = parse(&text) {
                proptest::prop_assert!(duration <= LONGEST);
            }
        }
    }
}
