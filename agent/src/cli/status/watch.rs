//! `lastsyn status --watch`: the same screen again and again, until somebody ends it.

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use super::{
    look,
    screen::{Screen, frame},
};
use crate::{cli::exit::Exit, client::Candidate, server::status::Status};

/// How often it is drawn. Each frame is some two kilobytes: little enough for a `kubectl exec` from far away.
const BETWEEN: Duration = Duration::from_secs(1);

/// Where nobody says how large the screen is.
const USUAL: (usize, usize) = (24, 80);

/// Looks and draws until standard output is closed or the process is ended. `json` prints the agent's answers instead, one a line.
pub(super) async fn run(agents: &[Candidate], json: bool) -> Exit {
    let mut screen = Terminal { drawn: false, is_one: io::stdout().is_terminal() };
    let mut before: Option<Status> = None;
    loop {
        let looked = look(agents).await;
        let written = match looked {
            Ok(body) if json => write(&format!("{}\n", body.trim_end())),
            Ok(body) => match serde_json::from_str::<Status>(&body) {
                Ok(status) => {
                    let lines = frame(&status, before.as_ref(), screen.size());
                    before = Some(status);
                    screen.draw(&lines)
                }
                Err(error) => {
                    screen.draw(&[format!("the agent is of another version ({error}); --json shows what it says")])
                }
            },
            Err(failures) => {
                before = None;
                screen.draw(&[format!("no agent answers here ({failures}); it is asked again")])
            }
        };
        if written.is_err() {
            // Nobody looks any more.
            return Exit::Done;
        }
        tokio::time::sleep(BETWEEN).await;
    }
}

struct Terminal {
    drawn: bool,
    is_one: bool,
}

impl Terminal {
    fn size(&self) -> Screen {
        let (rows, columns) = self.is_one.then(size).flatten().unwrap_or(USUAL);
        let colour = self.is_one && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Screen { rows, columns, colour }
    }

    /// Over what was drawn before; elsewhere than on a terminal, after it.
    fn draw(&mut self, lines: &[String]) -> io::Result<()> {
        let mut text = String::new();
        if self.is_one {
            // To the top; each line wipes what is left of the one before it, the last one everything below.
            text.push_str(if self.drawn { "\u{1b}[H" } else { "\u{1b}[2J\u{1b}[H" });
            text.push_str(&lines.join("\u{1b}[K\r\n"));
            text.push_str("\u{1b}[K\u{1b}[J");
        } else {
            text.push_str(&lines.join("\n"));
            text.push_str("\n\n");
        }
        self.drawn = true;
        write(&text)
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Lines and columns, where the terminal knows them.
fn size() -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_row > 0 && size.ws_col > 0).then(|| (size.ws_row.into(), size.ws_col.into()))
}
