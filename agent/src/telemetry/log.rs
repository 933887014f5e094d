//! Log lines on standard error, as JSON or text, at a level that can be changed while the agent runs.

use std::io::{self, IsTerminal};

use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    filter::Directive,
    fmt,
    fmt::MakeWriter,
    layer::{Layered, SubscriberExt},
    reload,
    util::SubscriberInitExt,
};

use crate::config::LogFormat;

/// The levels, most talkative first.
const LEVELS: [&str; 6] = ["trace", "debug", "info", "warn", "error", "off"];

/// Changes the level while the agent runs.
#[derive(Clone, Debug)]
pub struct LevelHandle(reload::Handle<EnvFilter, Registry>);

/// A level that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{part:?} is not a log level: {why}; write trace, debug, info, warn, error or off, or TARGET=LEVEL, with commas between"
)]
pub struct BadLevel {
    part: String,
    why: String,
}

/// Why logging could not be set up or changed.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Not a level.
    #[error(transparent)]
    Level(#[from] BadLevel),
    /// Somebody else has set up logging in this process.
    #[error("logging is set up already")]
    SetUpAlready(#[source] tracing_subscriber::util::TryInitError),
}

/// Whether `text` is a level, or directives such as `info,lastsyn::sensor=debug`.
///
/// # Errors
/// Names the part that is not. A bare target, which `EnvFilter` takes for "everything of that target", is refused: it is
/// a misspelled level more often than a wish.
pub fn check(text: &str) -> Result<(), BadLevel> {
    parse(text).map(drop)
}

fn parse(text: &str) -> Result<EnvFilter, BadLevel> {
    for part in text.split(',').map(str::trim) {
        let bad = |why: &str| BadLevel { part: part.chars().take(60).collect(), why: why.to_owned() };
        // The `=` of a span's field stands inside of brackets.
        let after_span = part.rsplit_once(']').map_or(part, |(_, rest)| rest);
        let level = match after_span.rsplit_once('=') {
            Some((_, level)) => level,
            None if after_span == part => part,
            None => return Err(bad("it has no level")),
        };
        if !LEVELS.iter().any(|known| known.eq_ignore_ascii_case(level)) {
            let meant =
                LEVELS.into_iter().min_by_key(|known| strsim::damerau_levenshtein(known, &level.to_lowercase()));
            return Err(bad(&format!("did you mean {}?", meant.unwrap_or("info"))));
        }
        part.parse::<Directive>().map_err(|error| bad(&error.to_string()))?;
    }
    EnvFilter::builder()
        .parse(text.split(',').map(str::trim).collect::<Vec<_>>().join(","))
        .map_err(|error| BadLevel { part: text.chars().take(60).collect(), why: error.to_string() })
}

/// Sends the process's log lines to standard error from now on.
///
/// # Errors
/// `level` is none (see [`check`]), or logging was set up before.
pub fn init(level: &str, format: LogFormat) -> Result<LevelHandle, LogError> {
    let (filter, handle) = reload::Layer::new(parse(level)?);
    let subscriber =
        tracing_subscriber::registry().with(filter).with(lines(format, io::stderr, io::stderr().is_terminal()));
    subscriber.try_init().map_err(LogError::SetUpAlready)?;
    Ok(LevelHandle(handle))
}

type Filtered = Layered<reload::Layer<EnvFilter, Registry>, Registry>;

/// The layer that writes lines. Times are RFC 3339 in UTC, as the formatter's default is.
fn lines<W>(format: LogFormat, writer: W, colours: bool) -> Box<dyn Layer<Filtered> + Send + Sync>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    match format {
        LogFormat::Json => fmt::layer()
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .with_writer(writer)
            .boxed(),
        LogFormat::Text => fmt::layer().with_ansi(colours).with_writer(writer).boxed(),
    }
}

// === impl LevelHandle ===

impl LevelHandle {
    /// The level now.
    pub fn get(&self) -> String {
        // The subscriber lives as long as the process; without it nothing is logged.
        self.0.with_current(EnvFilter::to_string).unwrap_or_else(|_| "off".to_owned())
    }

    /// Changes it.
    ///
    /// # Errors
    /// `text` is no level; the level stays what it was. See [`check`].
    pub fn set(&self, text: &str) -> Result<(), BadLevel> {
        let filter = parse(text)?;
        self.0.reload(filter).map_err(|error| BadLevel { part: text.to_owned(), why: error.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Memory(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("not poisoned").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(format: LogFormat, level: &str, work: impl FnOnce(&LevelHandle)) -> String {
        let memory = Memory::default();
        let writer = memory.clone();
        let (filter, handle) = reload::Layer::new(parse(level).expect("a level"));
        let subscriber = tracing_subscriber::registry().with(filter).with(lines(format, move || writer.clone(), false));
        tracing::subscriber::with_default(subscriber, || work(&LevelHandle(handle)));
        String::from_utf8(memory.0.lock().expect("not poisoned").clone()).expect("UTF-8")
    }

    #[test]
    fn takes_levels_and_directives() {
        for text in [
            "trace",
            "debug",
            "info",
            "warn",
            "error",
            "off",
            "INFO",
            "info,lastsyn=debug",
            "warn, hyper=off",
            "info,lastsyn[drain{port=80}]=trace",
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_none_and_names_it() {
        for (text, part) in [
            ("inffo", "inffo"),
            ("", ""),
            ("info,lastsyn", "lastsyn"),
            ("lastsyn=dbug", "lastsyn=dbug"),
            ("info,", ""),
            ("info,lastsyn[drain]", "lastsyn[drain]"),
            ("3", "3"),
            ("=,=", "="),
            ("lastsyn[drain{port=80,a=b}]=trace", "lastsyn[drain{port=80"),
        ] {
            assert_eq!(check(text).expect_err(text).part, part, "{text}");
        }
        assert!(check("inffo").expect_err("a misspelling").to_string().contains("did you mean info?"));
    }

    #[test]
    fn a_json_line_has_its_fields_at_the_top_and_the_time_in_utc() {
        let text = logged(LogFormat::Json, "info", |_| tracing::info!(port = 80, "listener found"));
        let line: serde_json::Value = serde_json::from_str(&text).expect("one JSON object");
        assert_eq!(
            (&line["message"], &line["port"], &line["level"]),
            (&"listener found".into(), &80.into(), &"INFO".into())
        );
        let time = line["timestamp"].as_str().expect("a time");
        assert!(time.ends_with('Z') && time.parse::<jiff::Timestamp>().is_ok(), "{time}");
    }

    #[test]
    fn text_has_no_colours_where_nobody_looks() {
        let text = logged(LogFormat::Text, "info", |_| tracing::info!(port = 80, "listener found"));
        assert!(text.contains("listener found port=80") && !text.contains('\u{1b}'), "{text:?}");
    }

    #[test]
    fn the_level_can_be_changed() {
        let text = logged(LogFormat::Json, "info", |level| {
            tracing::debug!("hidden before");
            assert_eq!(level.get(), "info");
            level.set("debug").expect("a level");
            tracing::debug!("shown");
            level.set("loud").expect_err("none");
            assert_eq!(level.get(), "debug");
            level.set("off").expect("a level");
            tracing::error!("hidden after");
        });
        assert!(text.contains("shown") && !text.contains("hidden"), "{text}");
    }

    proptest::proptest! {
            #[test]
            fn takes_any_text(text in ".*") {
                if let Err(error) = check(&text) {
    proptest::prop_assert!(!error.to_string().is_empty());
    }
            }
        }
}
