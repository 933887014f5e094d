//! Where it is shown: drawn over and over on a terminal, else a line for each second.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal, Write},
    os::fd::AsFd,
    time::Duration,
};

use anyhow::{Context, Result};
use rustix::termios::tcgetwinsize;

use super::{
    frame::{self, View},
    play::Happening,
    text::{Palette, clip},
};
use crate::clock::Deadline;

/// The smallest terminal that is drawn on, in columns and rows.
const SMALLEST: (u16, u16) = (80, 24);
/// Between two lines where nothing can be drawn.
const BETWEEN_LINES: Duration = Duration::from_secs(1);

/// A terminal that is drawn on, or a stream of lines.
#[derive(Debug)]
pub(super) struct Screen {
    stream: Stream,
    live: bool,
    palette: Palette,
    /// How many lines of the last frame stand above the cursor.
    drawn: usize,
    next_line: Option<Deadline>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    Output,
    Error,
}

// === impl Screen ===

impl Screen {
    /// Drawn on, if it is a terminal that is large enough.
    pub(super) fn on_standard_output() -> Self {
        let stdout = io::stdout();
        let terminal = stdout.is_terminal() && std::env::var_os("TERM").is_none_or(|name| name != "dumb");
        let live = terminal && is_large_enough(&stdout);
        Self::new(Stream::Output, live, terminal)
    }

    /// Lines only: standard output is for something else.
    pub(super) fn on_standard_error() -> Self {
        Self::new(Stream::Error, false, io::stderr().is_terminal())
    }

    fn new(stream: Stream, live: bool, terminal: bool) -> Self {
        // See no-color.org.
        let colours = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self { stream, live, palette: Palette { colours }, drawn: 0, next_line: None }
    }

    /// The colours that it has.
    pub(super) fn palette(&self) -> Palette {
        self.palette
    }

    /// Shows what goes on.
    pub(super) fn show(&mut self, view: &View<'_>) -> Result<()> {
        if self.live {
            return self.draw(&frame::lines(view, self.palette));
        }
        if self.next_line.is_none() {
            self.print(&frame::heading(view.plan, self.palette).join("\n"))?;
        }
        if self.next_line.is_none_or(Deadline::passed) {
            self.next_line = Some(Deadline::after(BETWEEN_LINES));
            self.print(&frame::line(view))?;
        }
        Ok(())
    }

    /// Says what has happened, where the next frame does not.
    pub(super) fn happened(&mut self, happening: &Happening) -> Result<()> {
        if self.live { Ok(()) } else { self.print(&frame::happening(happening, self.palette)) }
    }

    /// Puts the last word in the place of what was drawn.
    pub(super) fn conclude(&mut self, lines: &[String]) -> Result<()> {
        if self.live { self.draw(lines) } else { self.print(&format!("\n{}", lines.join("\n"))) }
    }

    fn draw(&mut self, lines: &[String]) -> Result<()> {
        // In one write, so that no half of a frame is seen; without the cursor, which would jump about.
        let mut frame = "\x1b[?25l".to_owned();
        if self.drawn > 0 {
            write!(frame, "\r\x1b[{}A", self.drawn)?;
        }
        for line in lines {
            // One that is longer than the terminal is wide would be two.
            writeln!(frame, "{}\x1b[K", clip(line, usize::from(SMALLEST.0)))?;
        }
        frame.push_str("\x1b[J");
        self.drawn = lines.len();
        self.write(&frame)
    }

    fn print(&mut self, text: &str) -> Result<()> {
        self.write(&format!("{text}\n"))
    }

    fn write(&mut self, text: &str) -> Result<()> {
        let written = match self.stream {
            Stream::Output => io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()),
            Stream::Error => io::stderr().write_all(text.as_bytes()),
        };
        written.context("what goes on could not be shown")
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if self.drawn > 0 {
            // A terminal that has gone needs no cursor.
            self.write("\x1b[?25h").ok();
        }
    }
}

/// A frame that does not fit cannot be drawn over. Where the size is not known, it is not drawn.
fn is_large_enough(terminal: impl AsFd) -> bool {
    tcgetwinsize(terminal).is_ok_and(|size| size.ws_col >= SMALLEST.0 && size.ws_row >= SMALLEST.1)
}
