//! Waiting for a condition, with a deadline: the only way in which a test waits.

use std::time::Duration;

use anyhow::{Result, bail};

use crate::clock::Deadline;

/// How long is slept between two looks. Short against everything that tests measure, long against the cost of a look.
const BETWEEN_LOOKS: Duration = Duration::from_millis(3);

/// What a look can answer: `true` or `Some` when the condition holds.
pub trait Look {
    /// What is known once the condition holds.
    type Found;

    /// The finding, if the condition holds.
    fn found(self) -> Option<Self::Found>;
}

/// Looks every few milliseconds until the condition holds, and once more when the deadline has passed.
///
/// # Errors
///
/// When it did not hold within the time; the message says what was awaited.
pub fn await_condition<L: Look>(what: &str, within: Duration, mut look: impl FnMut() -> L) -> Result<L::Found> {
    let deadline = Deadline::after(within);
    loop {
        let last = deadline.passed();
        if let Some(found) = look().found() {
            return Ok(found);
        }
        if last {
            bail!("{what}: did not come about within {within:?}");
        }
        pause(BETWEEN_LOOKS);
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that sleeps: between two looks at a condition")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}

// === impl Look ===

impl Look for bool {
    type Found = ();

    fn found(self) -> Option<()> {
        self.then_some(())
    }
}

impl<T> Look for Option<T> {
    type Found = T;

    fn found(self) -> Self {
        self
    }
}
