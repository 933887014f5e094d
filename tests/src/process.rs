//! A process of the lab: its output kept and readable while it runs, its end certain.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    clock::{Deadline, monotonic_now},
    wait::await_condition,
};

/// Which of a process's outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// A line that a process wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// When it was read, on the clock of [`monotonic_now`].
    pub at: u64,
    /// Where it was written.
    pub stream: Stream,
    /// Without its end; bytes that are no UTF-8 are replaced.
    pub text: String,
}

/// A child process. When it is dropped it is killed and reaped; during a panic its output is printed.
#[derive(Debug)]
pub struct Process {
    name: String,
    pid: Pid,
    child: Mutex<Child>,
    output: Arc<Captured>,
}

#[derive(Debug, Default)]
struct Captured {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: Vec<Line>,
    open_streams: usize,
}

// === impl Process ===

impl Process {
    /// Starts a command. Its standard input is empty, its outputs are captured.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn start(name: impl Into<String>, command: &mut Command) -> Result<Self> {
        let name = name.into();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("{name} did not start: {command:?}"))?;
        let pid = Pid::from_child(&child);
        let output = Arc::new(Captured {
            state: Mutex::new(State { open_streams: 2, ..State::default() }),
            ..Captured::default()
        });
        if let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) {
            capture(stdout, Stream::Output, Arc::clone(&output));
            capture(stderr, Stream::Error, Arc::clone(&output));
        }
        Ok(Self { name, pid, child: Mutex::new(child), output })
    }

    /// The name it has in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its process id.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Everything it wrote so far, in the order in which it was read.
    pub fn lines(&self) -> Vec<Line> {
        self.output.lock().lines.clone()
    }

    /// What it wrote to one stream so far, with line ends.
    pub fn text(&self, stream: Stream) -> String {
        let state = self.output.lock();
        state.lines.iter().filter(|line| line.stream == stream).flat_map(|line| [line.text.as_str(), "\n"]).collect()
    }

    /// The first line with `pattern` in it, also if it was written before this call.
    ///
    /// # Errors
    ///
    /// When none came within the time, or the outputs were closed without one. The message has the output.
    pub fn wait_for_line(&self, pattern: &str, within: Duration) -> Result<Line> {
        let deadline = Deadline::after(within);
        let mut state = self.output.lock();
        let mut seen = 0;
        loop {
            if let Some(line) = state.lines.iter().skip(seen).find(|line| line.text.contains(pattern)) {
                return Ok(line.clone());
            }
            seen = state.lines.len();
            let left = deadline.left();
            if state.open_streams == 0 || left.is_zero() {
                drop(state);
                let why = if left.is_zero() { format!("within {within:?}") } else { "before its end".to_owned() };
                return Err(anyhow!(
                    "{} wrote no line with `{pattern}` {why}; it wrote:\n{}",
                    self.name,
                    self.report()
                ));
            }
            state = self.output.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Sends it a signal. Nothing happens if it has ended.
    ///
    /// # Errors
    ///
    /// When the kernel refuses.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        // With the lock held nobody reaps it, so its id is not another's yet.
        let mut child = self.child();
        if child.try_wait()?.is_none() {
            kill_process(self.pid, signal).with_context(|| format!("{signal:?} was not sent to {}", self.name))?;
        }
        Ok(())
    }

    /// Its exit status, if it has ended.
    ///
    /// # Errors
    ///
    /// When the kernel does not know the process.
    pub fn try_wait(&self) -> Result<Option<ExitStatus>> {
        self.child().try_wait().with_context(|| format!("{} cannot be waited for", self.name))
    }

    /// Whether it runs or is stopped.
    ///
    /// # Errors
    ///
    /// When the kernel does not know the process.
    pub fn is_running(&self) -> Result<bool> {
        Ok(self.try_wait()?.is_none())
    }

    /// Checks that it has not ended, for waiting for something that it has to do first.
    ///
    /// # Errors
    ///
    /// When it has ended. The message has how, and its output.
    pub fn ensure_running(&self) -> Result<()> {
        if let Some(status) = self.try_wait()? {
            self.await_output(Duration::ZERO);
            bail!("{} ended with {status}; it wrote:\n{}", self.name, self.report());
        }
        Ok(())
    }

    /// Waits for its end, and for what it wrote to be read.
    ///
    /// # Errors
    ///
    /// When it did not end within the time. The message has its output.
    pub fn wait(&self, within: Duration) -> Result<ExitStatus> {
        let deadline = Deadline::after(within);
        let status = await_condition(&format!("the end of {}", self.name), within, || self.try_wait().transpose())
            .with_context(|| format!("it wrote:\n{}", self.report()))??;
        self.await_output(deadline.left());
        Ok(status)
    }

    /// Waits for its end and checks that it ended well.
    ///
    /// # Errors
    ///
    /// When it did not end within the time, or not with exit code 0. The message has its output.
    pub fn wait_for_success(&self, within: Duration) -> Result<()> {
        let status = self.wait(within)?;
        ensure!(status.success(), "{} ended with {status}; it wrote:\n{}", self.name, self.report());
        Ok(())
    }

    /// Ends it at once and reaps it.
    ///
    /// # Errors
    ///
    /// When the kernel does not know the process.
    pub fn kill(&self) -> Result<ExitStatus> {
        let mut child = self.child();
        // The kernel is asked to kill only what has not been reaped yet.
        child.kill().with_context(|| format!("{} cannot be killed", self.name))?;
        child.wait().with_context(|| format!("{} cannot be waited for", self.name))
    }

    /// Everything it wrote, for a message.
    pub fn report(&self) -> String {
        let state = self.output.lock();
        if state.lines.is_empty() {
            return "  (nothing)".to_owned();
        }
        state.lines.iter().flat_map(|line| ["  ", &line.text, "\n"]).collect()
    }

    /// Waits until all that it wrote before its end is read. A grandchild may keep the pipes open; what that writes is not
    /// waited for much longer than `within`.
    fn await_output(&self, within: Duration) {
        let within = within.max(Duration::from_millis(500));
        drop(self.output.changed.wait_timeout_while(self.output.lock(), within, |state| state.open_streams > 0));
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Err(error) = self.kill() {
            eprintln!("{error:#}");
        }
        if thread::panicking() {
            eprintln!("{} wrote:\n{}", self.name, self.report());
        }
    }
}

// === impl Captured ===

impl Captured {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn capture(pipe: impl Read + Send + 'static, stream: Stream, output: Arc<Captured>) {
    thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let mut bytes = Vec::new();
        while pipe.read_until(b'\n', &mut bytes).is_ok_and(|length| length > 0) {
            let text = String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']).to_owned();
            output.lock().lines.push(Line { at: monotonic_now(), stream, text });
            output.changed.notify_all();
            bytes.clear();
        }
        output.lock().open_streams -= 1;
        output.changed.notify_all();
    });
}
