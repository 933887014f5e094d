//! The demonstration: a pod with a real `HAProxy` is deleted while a client connects, the agent holds the hook, and the
//! node moves its forwarding as a node's proxy does. It is shown live, and its result is checked.
//!
//! | part | place |
//! | --- | --- |
//! | what is shown, and what has to come of it | `scenario`, `expectation` |
//! | hosts, servers, agent, client | `scene`, `storm` |
//! | what happens when | `play` |
//! | the numbers | `account` |
//! | what is seen of it | `frame`, `report`, `screen` |

mod account;
mod expectation;
mod frame;
mod interrupt;
mod play;
mod report;
mod scenario;
mod scene;
mod screen;
mod storm;
mod text;

use std::io::{self, Write};

use anyhow::Result;

pub use self::scenario::{Options, Scenario};
use self::{interrupt::Interrupted, play::Play, scene::Scene, screen::Screen};

/// How a demonstration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// What was expected came about.
    AsExpected,
    /// Something else did; the reason has been shown.
    Otherwise,
    /// Somebody asked for its end (SIGINT or SIGTERM).
    Interrupted,
}

/// Plays a scenario, shows it on standard output, and tears everything down. With `--json` standard output gets one JSON
/// object, and the progress goes to standard error.
///
/// # Errors
///
/// When the options do not fit together, the scene cannot be made, or a part of it fails; the message says what to do.
pub fn run(options: &Options) -> Result<Conclusion> {
    let plan = options.plan()?;
    interrupt::listen()?;
    let mut screen = if options.json { Screen::on_standard_error() } else { Screen::on_standard_output() };
    let played = Scene::make(&plan).and_then(|scene| Play::new(scene, &plan, &mut screen).run());
    let account = match played {
        Ok(account) => account,
        Err(error) if error.is::<Interrupted>() || interrupt::requested() => return Ok(Conclusion::Interrupted),
        Err(error) => return Err(error),
    };
    let disappointments = expectation::check(&account);
    if options.json {
        writeln!(io::stdout(), "{}", account.json(expectation::of(&plan), &disappointments))?;
    } else {
        screen.conclude(&report::lines(&account, &disappointments, screen.palette()))?;
    }
    Ok(if disappointments.is_empty() { Conclusion::AsExpected } else { Conclusion::Otherwise })
}
