//! Running the binary as others do.

use std::{
    io::Read,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use tokio::time::Instant;

/// A binary that runs longer hangs.
const DEADLINE: Duration = Duration::from_secs(30);

/// How it ended.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

/// Runs the binary to its end, without the variables of whoever runs the tests.
pub(crate) fn lastsyn(arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastsyn"));
    command.args(arguments);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("LASTSYN_") {
            command.env_remove(name);
        }
    }
    command.envs(variables.iter().copied());
    let start = Instant::now();
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    let stdout = collect(child.stdout.take().expect("piped"));
    let stderr = collect(child.stderr.take().expect("piped"));
    let (stdout, stderr) = (within(&stdout, &mut child), within(&stderr, &mut child));
    let code = child.wait().expect("it has ended").code();
    Ended { code, stdout, stderr, took: start.elapsed() }
}

fn collect(mut from: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (to, text) = mpsc::channel();
    thread::spawn(move || {
        let mut all = String::new();
        from.read_to_string(&mut all).expect("UTF-8");
        to.send(all)
    });
    text
}

fn within(text: &mpsc::Receiver<String>, child: &mut Child) -> String {
    text.recv_timeout(DEADLINE).unwrap_or_else(|_| {
        child.kill().expect("our own child");
        panic!("it hangs")
    })
}
