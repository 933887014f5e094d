//! Writing to the terminal. `print!` ends the process when its reader has gone, and a hook that ends is a hook that lets
//! go; here a line that nobody reads is lost, and nothing else.

use std::{
    fmt,
    io::{self, Write},
};

/// A result, to standard output.
pub(super) fn result(line: impl fmt::Display) {
    write(io::stdout().lock(), format_args!("{line}\n"));
}

/// A remark or complaint, to standard error.
pub(super) fn remark(line: impl fmt::Display) {
    write(io::stderr().lock(), format_args!("lastsyn: {line}\n"));
}

fn write(mut to: impl Write, text: fmt::Arguments<'_>) {
    drop(to.write_all(text.to_string().as_bytes()).and_then(|()| to.flush()));
}
